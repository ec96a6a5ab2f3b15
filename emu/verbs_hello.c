#include "emu/verbs_hello.h"

#include <string.h>

#define BITS_24 0xffffffu

static const uint8_t hello_tag[4] = {'V', 'R', 'B', 1}; /* last byte: version */
static const uint8_t address_tag[4] = {'S', 'M', 'V', 1};
enum { ADDRESS_BYTES = 24, FAMILY_4 = 4, FAMILY_6 = 6, UNICAST_LIDS_END = 0xc000 };

static void put(uint8_t *to, uint32_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint32_t get(const uint8_t *from, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint32_t)from[i] << 8 * i;
    }
    return value;
}

/* ---- Hello: 0 general hello, 12 tag, 16 length of all, 20 qpn, 24 psn, 28 lid, 30 mtu, 31 link, 32 gid ---- */

void smg_verbs_hello_encode(const struct smg_verbs_hello *hello, uint8_t bytes_out[SMG_VERBS_HELLO_BYTES])
{
    smg_hello_encode(hello->instance, hello->queue, bytes_out);
    memcpy(bytes_out + 12, hello_tag, sizeof(hello_tag));
    put(bytes_out + 16, SMG_VERBS_HELLO_BYTES, 4);
    put(bytes_out + 20, hello->qpn, 4);
    put(bytes_out + 24, hello->psn, 4);
    put(bytes_out + 28, hello->lid, 2);
    bytes_out[30] = hello->mtu;
    bytes_out[31] = hello->link;
    memcpy(bytes_out + 32, hello->gid, sizeof(hello->gid));
}

static int reachable(const struct smg_verbs_hello *h)
{
    static const uint8_t zero[16];
    if (h->link == SMG_VERBS_INFINIBAND) {
        return h->lid > 0 && h->lid < UNICAST_LIDS_END;
    }
    return h->link == SMG_VERBS_ETHERNET && memcmp(h->gid, zero, sizeof(zero)) != 0;
}

int smg_verbs_hello_decode(const uint8_t bytes[SMG_VERBS_HELLO_BYTES], struct smg_verbs_hello *out)
{
    if (smg_hello_decode(bytes, SMG_HELLO_BYTES, &out->instance, &out->queue) ||
        memcmp(bytes + 12, hello_tag, sizeof(hello_tag)) || get(bytes + 16, 4) != SMG_VERBS_HELLO_BYTES) {
        return SMG_ERR_PROTOCOL;
    }
    out->qpn = get(bytes + 20, 4);
    out->psn = get(bytes + 24, 4);
    out->lid = (uint16_t)get(bytes + 28, 2);
    out->mtu = bytes[30];
    out->link = bytes[31];
    memcpy(out->gid, bytes + 32, sizeof(out->gid));
    if (out->queue >= SMG_QUEUES || !out->qpn || out->qpn > BITS_24 || out->psn > BITS_24 || out->mtu < 1 || out->mtu > 5) {
        return SMG_ERR_PROTOCOL;
    }
    return reachable(out) ? SMG_OK : SMG_ERR_PROTOCOL;
}

/* ---- Address: 0 tag, 4 family, 5 zero, 6 port, 8 address ---- */

void smg_verbs_address_encode(const struct sockaddr_storage *listener, struct smg_fabric_address *out)
{
    memset(out, 0, sizeof(*out));
    out->bytes = ADDRESS_BYTES;
    memcpy(out->data, address_tag, sizeof(address_tag));
    if (listener->ss_family == AF_INET6) {
        struct sockaddr_in6 a;
        memcpy(&a, listener, sizeof(a));
        out->data[4] = FAMILY_6;
        put(out->data + 6, ntohs(a.sin6_port), 2);
        memcpy(out->data + 8, &a.sin6_addr, 16);
    } else {
        struct sockaddr_in a;
        memcpy(&a, listener, sizeof(a));
        out->data[4] = FAMILY_4;
        put(out->data + 6, ntohs(a.sin_port), 2);
        memcpy(out->data + 8, &a.sin_addr, 4);
    }
}

int smg_verbs_address_decode(const struct smg_fabric_address *address, struct sockaddr_storage *out, socklen_t *bytes_out)
{
    const uint8_t *data = address->data;
    uint16_t port = (uint16_t)get(data + 6, 2);
    memset(out, 0, sizeof(*out));
    if (address->bytes != ADDRESS_BYTES || memcmp(data, address_tag, sizeof(address_tag)) || data[5] || !port) {
        return SMG_ERR_PROTOCOL;
    }
    if (data[4] == FAMILY_6) {
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&a.sin6_addr, data + 8, 16);
        memcpy(out, &a, sizeof(a));
        *bytes_out = sizeof(a);
        return SMG_OK;
    }
    if (data[4] == FAMILY_4) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&a.sin_addr, data + 8, 4);
        memcpy(out, &a, sizeof(a));
        *bytes_out = sizeof(a);
        return SMG_OK;
    }
    return SMG_ERR_PROTOCOL;
}
