/* One value of a scenario: text to field, field to JSON, and what to say when the text does not fit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "traces/scenario_keys.h"
#include "traces/text.h"

static const char *const flag_names[] = {"false", "true", NULL};
static const char *const tristate_names[] = {"false", "true", "auto", NULL};

_Static_assert(SMG_FALSE == 0 && SMG_TRUE == 1 && SMG_AUTO == 2, "tristate_names follow the enum");
_Static_assert(sizeof(enum smg_tristate) == sizeof(int) && sizeof(enum smg_engine_kind) == sizeof(int),
               "choices are stored as int");

static const char *const *choices(const struct smg_key *k)
{
    if (k->kind == SMG_KEY_FLAG) {
        return flag_names;
    }
    return k->kind == SMG_KEY_TRISTATE ? tristate_names : k->names;
}

static int choice_index(const char *const *names, const char *text)
{
    int i;

    for (i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

static int in_range(const struct smg_key *k, double value)
{
    return value >= k->lo && (value < k->hi || (value <= k->hi && !k->below));
}

static int parse_text(const struct smg_key *k, const char *text, void *field)
{
    if (strlen(text) >= k->bytes || (text[0] == '\0' && k->preset[0] != '\0')) {
        return SMG_ERR_RANGE;
    }
    if ((k->names != NULL && choice_index(k->names, text) < 0) || !smg_text_is_utf8(text)) {
        return SMG_ERR_PARSE;
    }
    memset(field, 0, k->bytes); /* no stale bytes: equal scenarios compare equal */
    memcpy(field, text, strlen(text));
    return SMG_OK;
}

static int parse_integer(const struct smg_key *k, const char *text, void *field)
{
    uint64_t value;
    uint32_t narrow;
    int status = smg_text_u64(text, &value);

    if (status == SMG_OK && k->kind != SMG_KEY_U64 && !in_range(k, (double)value)) {
        status = SMG_ERR_RANGE;
    }
    /* 2^64 - 1 rounds to 2^64 as a double: a 64-bit key whose range is everything must not be compared as one. */
    if (status == SMG_OK && k->kind == SMG_KEY_U64 && k->hi < 0x1p64 && !in_range(k, (double)value)) {
        status = SMG_ERR_RANGE;
    }
    if (status != SMG_OK) {
        return status;
    }
    narrow = (uint32_t)value;
    memcpy(field, k->kind == SMG_KEY_U64 ? (void *)&value : (void *)&narrow, k->bytes);
    return SMG_OK;
}

static int parse_number(const struct smg_key *k, const char *text, void *field)
{
    double value;
    int status = smg_text_double(text, &value);

    if (status == SMG_OK && !in_range(k, value)) {
        status = SMG_ERR_RANGE;
    }
    if (status == SMG_OK) {
        memcpy(field, &value, sizeof(value));
    }
    return status;
}

static int parse_choice(const struct smg_key *k, const char *text, void *field)
{
    int index = choice_index(choices(k), text);

    if (index < 0) {
        return SMG_ERR_PARSE;
    }
    memcpy(field, &index, sizeof(index));
    return SMG_OK;
}

static int parse_count_or_auto(const struct smg_key *k, const char *text, void *field)
{
    uint32_t automatic = SMG_KR_AUTO;

    if (strcmp(text, "auto") != 0) {
        return parse_integer(k, text, field);
    }
    memcpy(field, &automatic, sizeof(automatic));
    return SMG_OK;
}

static int parse_field(const struct smg_key *k, const char *text, void *field)
{
    switch (k->kind) {
    case SMG_KEY_TEXT:
        return parse_text(k, text, field);
    case SMG_KEY_U32:
    case SMG_KEY_U64:
        return parse_integer(k, text, field);
    case SMG_KEY_NUMBER:
        return parse_number(k, text, field);
    case SMG_KEY_FLAG:
    case SMG_KEY_CHOICE:
    case SMG_KEY_TRISTATE:
        return parse_choice(k, text, field);
    case SMG_KEY_COUNT_OR_AUTO:
        return parse_count_or_auto(k, text, field);
    }
    return SMG_ERR_INVALID;
}

/* Quotes make text, so they are wrong around numbers and truth values; names may be quoted. */
static int quotes_fit(const struct smg_key *k)
{
    return k->kind == SMG_KEY_TEXT || k->kind == SMG_KEY_CHOICE;
}

int smg_key_parse(const struct smg_key *k, const char *text, int quoted, struct smg_scenario *s)
{
    int given = 1, status;

    if (quoted && !quotes_fit(k)) {
        return SMG_ERR_PARSE;
    }
    status = parse_field(k, text, (char *)s + k->offset);
    if (status == SMG_OK && k->given != 0) {
        memcpy((char *)s + k->given, &given, sizeof(given));
    }
    return status;
}

/* JSON integers end at 2^63 - 1; larger ones travel as text. */
static json_t *json_u64(uint64_t value)
{
    char text[24];

    if (value <= INT64_MAX) {
        return json_integer((json_int_t)value);
    }
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return json_string(text);
}

json_t *smg_key_json(const struct smg_key *k, const struct smg_scenario *s)
{
    const char *field = (const char *)s + k->offset;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    double number = 0;
    int index = 0;

    if (k->given != 0 && (k->filler == 0 || *((const char *)s + k->filler) != '\0')) {
        memcpy(&index, (const char *)s + k->given, sizeof(index));
        if (!index) {
            return json_null();
        }
    }
    switch (k->kind) {
    case SMG_KEY_TEXT:
        return json_string(field);
    case SMG_KEY_U64:
        memcpy(&wide, field, sizeof(wide));
        return json_u64(wide);
    case SMG_KEY_NUMBER:
        memcpy(&number, field, sizeof(number));
        return json_real(number);
    case SMG_KEY_U32:
    case SMG_KEY_COUNT_OR_AUTO:
        memcpy(&narrow, field, sizeof(narrow));
        return k->kind == SMG_KEY_COUNT_OR_AUTO && narrow == SMG_KR_AUTO ? json_string("auto") : json_integer(narrow);
    case SMG_KEY_FLAG:
    case SMG_KEY_CHOICE:
    case SMG_KEY_TRISTATE:
        memcpy(&index, field, sizeof(index));
        break;
    }
    if (k->kind == SMG_KEY_CHOICE || index == SMG_AUTO) {
        return json_string(choices(k)[index]);
    }
    return json_boolean(index);
}

static void range_text(const struct smg_key *k, char *text, size_t text_bytes)
{
    if (k->kind == SMG_KEY_U64 && k->hi >= 0x1p64) {
        snprintf(text, text_bytes, "[0, 2^64-1]");
    } else {
        snprintf(text, text_bytes, "[%.10g, %.10g%c", k->lo, k->hi, k->below ? ')' : ']');
    }
}

void smg_key_expected(const struct smg_key *k, char *text, size_t text_bytes)
{
    char part[128];

    switch (k->kind) {
    case SMG_KEY_U32:
    case SMG_KEY_U64:
    case SMG_KEY_COUNT_OR_AUTO:
        range_text(k, part, sizeof(part));
        snprintf(text, text_bytes, "%san integer in %s", k->kind == SMG_KEY_COUNT_OR_AUTO ? "auto or " : "", part);
        return;
    case SMG_KEY_NUMBER:
        range_text(k, part, sizeof(part));
        snprintf(text, text_bytes, "a number in %s", part);
        return;
    case SMG_KEY_FLAG:
        snprintf(text, text_bytes, "true or false");
        return;
    case SMG_KEY_TEXT:
    case SMG_KEY_CHOICE:
    case SMG_KEY_TRISTATE:
        break;
    }
    if (choices(k) != NULL) {
        smg_text_join(choices(k), part, sizeof(part));
        snprintf(text, text_bytes, "one of %s", part);
    } else {
        snprintf(text, text_bytes, "a text of at most %zu bytes", k->bytes - 1);
    }
}

void smg_key_complaint(const struct smg_key *k, const char *text, int quoted, char *out, size_t out_bytes)
{
    char expected[160], hint[160] = "";

    smg_key_expected(k, expected, sizeof(expected));
    if (choices(k) != NULL && k->kind != SMG_KEY_FLAG) {
        smg_text_hint(text, choices(k), hint, sizeof(hint));
    }
    if (text[0] == '\0') {
        snprintf(out, out_bytes, "expected %s, found nothing", expected);
    } else if (quoted && !quotes_fit(k)) {
        snprintf(out, out_bytes, "expected %s, found the quoted text '%.60s'", expected, text);
    } else {
        snprintf(out, out_bytes, "expected %s, found '%.60s'%s", expected, text, hint);
    }
}

void smg_key_unknown(const char *path, char *out, size_t out_bytes)
{
    const char *names[SMG_KEYS_MAX + 1];
    const struct smg_key *keys;
    char hint[160];
    size_t i, n;

    if (smg_key_is_group(path)) {
        snprintf(out, out_bytes, "a group of keys, not a key");
        return;
    }
    keys = smg_keys(&n);
    for (i = 0; i < n; i++) {
        names[i] = keys[i].path;
    }
    names[n] = NULL;
    smg_text_hint(path, names, hint, sizeof(hint));
    snprintf(out, out_bytes, "unknown key%s", hint);
}
