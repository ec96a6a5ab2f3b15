/* What peers tell each other before a queue pair can be used: how an instance joins a run, the hello of every fabric, that of
 * verbs, and the address of a verbs listener. Bytes are those of a message; longer ones are cut, shorter ones filled with zeros.
 * What is accepted is in range, and becomes the same bytes again. */
#include <string.h>

#include "emu/fabric_port.h"
#include "emu/join.h"
#include "emu/verbs_hello.h"
#include "tests/fuzz/fuzz.h"

static void take(void *to, size_t want, const uint8_t *data, size_t bytes)
{
    memset(to, 0, want);
    memcpy(to, data, bytes < want ? bytes : want);
}

static void any_fabric(const uint8_t *data, size_t bytes)
{
    uint8_t again[SMG_HELLO_BYTES];
    uint16_t instance, queue;

    if (smg_hello_decode(data, bytes, &instance, &queue))
        return;
    fuzz_must(bytes >= SMG_HELLO_BYTES);
    smg_hello_encode(instance, queue, again);
    fuzz_must(!memcmp(data, again, sizeof again));
}

static void verbs(const uint8_t *data, size_t bytes)
{
    uint8_t in[SMG_VERBS_HELLO_BYTES], again[SMG_VERBS_HELLO_BYTES];
    struct smg_verbs_hello h;

    take(in, sizeof in, data, bytes);
    if (smg_verbs_hello_decode(in, &h))
        return;
    fuzz_must(h.queue < SMG_QUEUES && h.qpn && h.qpn < 1u << 24 && h.psn < 1u << 24 && h.mtu >= 1 && h.mtu <= 5);
    smg_verbs_hello_encode(&h, again);
    fuzz_must(!memcmp(in, again, sizeof in));
}

static void address(const uint8_t *data, size_t bytes)
{
    struct smg_fabric_address in, again;
    struct sockaddr_storage listener;
    socklen_t length = 0;

    take(&in, sizeof in, data, bytes);
    if (smg_verbs_address_decode(&in, &listener, &length))
        return;
    fuzz_must(length == (listener.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)));
    smg_verbs_address_encode(&listener, &again);
    fuzz_must(again.bytes == in.bytes);
    fuzz_must(!memcmp(again.data, in.data, listener.ss_family == AF_INET6 ? 24 : 12));
}

static void join(const uint8_t *data, size_t bytes)
{
    static const struct smg_token secret = {.bytes = "secret", .n = 6};
    const uint8_t here[8] = {[3] = 1};
    uint8_t in[SMG_JOIN_HELLO_BYTES], again[SMG_JOIN_HELLO_BYTES];
    struct smg_join_hello h;
    enum smg_join_answer answer;

    take(in, sizeof in, data, bytes);
    if (!smg_join_hello_decode(in, &h)) {
        fuzz_must(h.instance && h.token.n <= SMG_TOKEN_BYTES);
        smg_join_hello_encode(&h, again);
        fuzz_must(!memcmp(in, again, sizeof in));
        answer = smg_join_judge(&h, &secret, 7, sizeof here, here);
        fuzz_must(answer != SMG_JOIN_WELCOME || (smg_token_equal(&h.token, &secret) && h.geometry == 7 && !here[h.instance]));
    }
    take(in, SMG_JOIN_ANSWER_BYTES, data, bytes);
    if (smg_join_answer_decode(in, &answer))
        return;
    smg_join_answer_encode(answer, again);
    fuzz_must(!memcmp(in, again, SMG_JOIN_ANSWER_BYTES));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    join(data, bytes);
    any_fabric(data, bytes);
    verbs(data, bytes);
    address(data, bytes);
    return 0;
}
