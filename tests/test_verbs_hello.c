/* What two ends of an RDMA queue pair tell each other: bytes that are not exactly a hello of this version are refused. Needs no
 * device. */
#include "config.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu/verbs_hello.h"

static const struct smg_verbs_hello ethernet = {.instance = 513,
                                                .queue = SMG_QUEUE_CTL,
                                                .qpn = 0xabcdef,
                                                .psn = 0x123456,
                                                .mtu = 5,
                                                .link = SMG_VERBS_ETHERNET,
                                                .gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct smg_verbs_hello infiniband = {
    .instance = 1, .queue = 0, .qpn = 2, .psn = 0, .lid = 7, .mtu = 1, .link = SMG_VERBS_INFINIBAND};

static void check_same(const struct smg_verbs_hello *in)
{
    uint8_t bytes[SMG_VERBS_HELLO_BYTES];
    struct smg_verbs_hello out;
    memset(&out, 0, sizeof(out));
    smg_verbs_hello_encode(in, bytes);
    assert_int_equal(smg_verbs_hello_decode(bytes, &out), SMG_OK);
    assert_int_equal(out.instance, in->instance);
    assert_int_equal(out.queue, in->queue);
    assert_int_equal(out.qpn, in->qpn);
    assert_int_equal(out.psn, in->psn);
    assert_int_equal(out.lid, in->lid);
    assert_int_equal(out.mtu, in->mtu);
    assert_int_equal(out.link, in->link);
    assert_memory_equal(out.gid, in->gid, sizeof(in->gid));
}

static void round_trip(void **state)
{
    (void)state;
    check_same(&ethernet);
    check_same(&infiniband);
}

static void check_refused(const struct smg_verbs_hello *h)
{
    uint8_t bytes[SMG_VERBS_HELLO_BYTES];
    struct smg_verbs_hello out;
    smg_verbs_hello_encode(h, bytes);
    assert_int_equal(smg_verbs_hello_decode(bytes, &out), SMG_ERR_PROTOCOL);
}

#define REFUSED(from, ...)                                                                                                       \
    do {                                                                                                                         \
        struct smg_verbs_hello h = from;                                                                                         \
        __VA_ARGS__;                                                                                                             \
        check_refused(&h);                                                                                                       \
    } while (0)

static void fields(void **state)
{
    (void)state;
    REFUSED(ethernet, h.queue = SMG_QUEUES);
    REFUSED(ethernet, h.qpn = 0);
    REFUSED(ethernet, h.qpn = 1u << 24);
    REFUSED(ethernet, h.psn = 1u << 24);
    REFUSED(ethernet, h.mtu = 0);
    REFUSED(ethernet, h.mtu = 6);
    REFUSED(ethernet, h.link = 0);
    REFUSED(ethernet, h.link = 3);
    REFUSED(ethernet, memset(h.gid, 0, sizeof(h.gid)));
    REFUSED(infiniband, h.lid = 0);
    REFUSED(infiniband, h.lid = 0xc000);
}

/* Magic, versions and length: each of the bytes that say what this is. */
static void frame(void **state)
{
    uint8_t bytes[SMG_VERBS_HELLO_BYTES];
    struct smg_verbs_hello out;
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        if (i >= 8 && i < 12) {
            continue; /* instance and queue */
        }
        smg_verbs_hello_encode(&ethernet, bytes);
        bytes[i] ^= 1;
        assert_int_equal(smg_verbs_hello_decode(bytes, &out), SMG_ERR_PROTOCOL);
    }
}

static void addresses(void **state)
{
    struct sockaddr_storage in, out;
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(4711), .sin_addr.s_addr = htonl(0x0a000001)}, b4;
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(65535), .sin6_addr = {{{0xfd, 1, [15] = 9}}}}, b6;
    struct smg_fabric_address wire;
    socklen_t bytes;
    (void)state;
    memset(&in, 0, sizeof(in));
    memcpy(&in, &a4, sizeof(a4));
    smg_verbs_address_encode(&in, &wire);
    assert_int_equal(smg_verbs_address_decode(&wire, &out, &bytes), SMG_OK);
    memcpy(&b4, &out, sizeof(b4));
    assert_int_equal(bytes, sizeof(b4));
    assert_memory_equal(&a4, &b4, sizeof(a4));
    memcpy(&in, &a6, sizeof(a6));
    smg_verbs_address_encode(&in, &wire);
    assert_int_equal(smg_verbs_address_decode(&wire, &out, &bytes), SMG_OK);
    memcpy(&b6, &out, sizeof(b6));
    assert_int_equal(bytes, sizeof(b6));
    assert_memory_equal(&a6, &b6, sizeof(a6));
    for (unsigned i = 0; i < 6; i++) { /* tag, family, zero */
        wire.data[i] ^= 0x80;
        assert_int_equal(smg_verbs_address_decode(&wire, &out, &bytes), SMG_ERR_PROTOCOL);
        wire.data[i] ^= 0x80;
    }
    wire.bytes--;
    assert_int_equal(smg_verbs_address_decode(&wire, &out, &bytes), SMG_ERR_PROTOCOL);
    wire.bytes++;
    wire.data[6] = wire.data[7] = 0;
    assert_int_equal(smg_verbs_address_decode(&wire, &out, &bytes), SMG_ERR_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(fields),
        cmocka_unit_test(frame),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
