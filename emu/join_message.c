/* The two messages by which an instance joins a cluster, and what the router thinks of the first. */
#include <string.h>

#include "emu/join.h"

/* Hello: 0 tag and version, 8 length of all, 12 instance, 14 bytes of the token, 16 geometry, 24 zero, 32 token.
 * Answer: 0 tag and version, 8 answer, 12 zero. */
static const uint8_t hello_tag[8] = {'S', 'M', 'G', 'J', 'O', 'I', 'N', 1};
static const uint8_t answer_tag[8] = {'S', 'M', 'G', 'A', 'N', 'S', 'W', 1};

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static int all_zero(const uint8_t *from, size_t bytes)
{
    uint8_t any = 0;

    for (size_t i = 0; i < bytes; i++)
        any |= from[i];
    return !any;
}

void smg_join_hello_encode(const struct smg_join_hello *hello, uint8_t out[SMG_JOIN_HELLO_BYTES])
{
    memset(out, 0, SMG_JOIN_HELLO_BYTES);
    memcpy(out, hello_tag, sizeof hello_tag);
    put(out + 8, SMG_JOIN_HELLO_BYTES, 4);
    put(out + 12, hello->instance, 2);
    put(out + 14, hello->token.n, 2);
    put(out + 16, hello->geometry, 8);
    memcpy(out + 32, hello->token.bytes, hello->token.n);
}

int smg_join_hello_decode(const uint8_t in[SMG_JOIN_HELLO_BYTES], struct smg_join_hello *out)
{
    memset(out, 0, sizeof *out);
    if (memcmp(in, hello_tag, sizeof hello_tag) || get(in + 8, 4) != SMG_JOIN_HELLO_BYTES || !all_zero(in + 24, 8))
        return SMG_ERR_PROTOCOL;
    out->instance = (uint16_t)get(in + 12, 2);
    out->token.n = (uint32_t)get(in + 14, 2);
    out->geometry = get(in + 16, 8);
    if (!out->instance || out->token.n > SMG_TOKEN_BYTES || !all_zero(in + 32 + out->token.n, SMG_TOKEN_BYTES - out->token.n))
        return SMG_ERR_PROTOCOL;
    memcpy(out->token.bytes, in + 32, out->token.n);
    return SMG_OK;
}

void smg_join_answer_encode(enum smg_join_answer answer, uint8_t out[SMG_JOIN_ANSWER_BYTES])
{
    memset(out, 0, SMG_JOIN_ANSWER_BYTES);
    memcpy(out, answer_tag, sizeof answer_tag);
    put(out + 8, (uint64_t)answer, 4);
}

int smg_join_answer_decode(const uint8_t in[SMG_JOIN_ANSWER_BYTES], enum smg_join_answer *out)
{
    uint64_t answer = get(in + 8, 4);

    if (memcmp(in, answer_tag, sizeof answer_tag) || answer < SMG_JOIN_WELCOME || answer >= SMG_JOIN_ANSWERS ||
        !all_zero(in + 12, SMG_JOIN_ANSWER_BYTES - 12))
        return SMG_ERR_PROTOCOL;
    *out = (enum smg_join_answer)answer;
    return SMG_OK;
}

int smg_token_equal(const struct smg_token *a, const struct smg_token *b)
{
    volatile uint8_t differs = (uint8_t)((a->n ^ b->n) | (a->n ^ b->n) >> 8);

    for (size_t i = 0; i < SMG_TOKEN_BYTES; i++) /* bytes beyond n are zero */
        differs = (uint8_t)(differs | (a->bytes[i] ^ b->bytes[i]));
    return !differs;
}

enum smg_join_answer smg_join_judge(const struct smg_join_hello *hello, const struct smg_token *token, uint64_t geometry,
                                    uint32_t instances, const uint8_t *here)
{
    if (!smg_token_equal(&hello->token, token))
        return SMG_JOIN_STRANGER;
    if (hello->geometry != geometry)
        return SMG_JOIN_GEOMETRY;
    if (!hello->instance || hello->instance >= instances)
        return SMG_JOIN_INSTANCE;
    return here[hello->instance] ? SMG_JOIN_TAKEN : SMG_JOIN_WELCOME;
}
