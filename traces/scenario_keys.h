/* The key table of scenario files, and the conversion of one value from and to text. */
#ifndef SMG_TRACES_SCENARIO_KEYS_H
#define SMG_TRACES_SCENARIO_KEYS_H

#include <jansson.h>
#include <stddef.h>

#include "core/world.h"

enum smg_key_kind {
    SMG_KEY_TEXT,
    SMG_KEY_U32,
    SMG_KEY_U64,
    SMG_KEY_NUMBER,
    SMG_KEY_FLAG,         /* int: true or false */
    SMG_KEY_CHOICE,       /* enum: index into names */
    SMG_KEY_TRISTATE,     /* enum smg_tristate */
    SMG_KEY_COUNT_OR_AUTO /* uint32_t, SMG_KR_AUTO for "auto" */
};

struct smg_key {
    const char *path; /* "prefill.nodes" */
    enum smg_key_kind kind;
    const char *preset;       /* the default, as text */
    const char *unit;         /* "" none */
    const char *doc;          /* one sentence */
    const char *const *names; /* TEXT with known values, CHOICE: NULL-terminated */
    size_t offset, bytes;     /* the field in struct smg_scenario */
    size_t given;             /* int field set when the key is given; 0: none */
    size_t filler;            /* with given: text field; unless it is empty it decides for a key that is not given. 0: none */
    double lo, hi;            /* range of numbers */
    int below;                /* hi itself is excluded */
};

#define SMG_KEYS_MAX 128

const struct smg_key *smg_keys(size_t *n_out);
/* NULL when there is none. */
const struct smg_key *smg_key_find(const char *path);
/* True when some key lies below path: "prefill" of "prefill.nodes". */
int smg_key_is_group(const char *path);
/* What the key takes, for a person: "an integer in [1, 100000]". */
void smg_key_expected(const struct smg_key *k, char *text, size_t text_bytes);
/* Sets the field from text; quoted: it was written in quotes, so it can only be text. On error *s is unchanged. */
int smg_key_parse(const struct smg_key *k, const char *text, int quoted, struct smg_scenario *s);
/* The field as JSON: null when its default depends on other keys and it was not given. New reference, NULL: out of memory. */
json_t *smg_key_json(const struct smg_key *k, const struct smg_scenario *s);
/* "expected an integer in [1, 8], found 'x'; did you mean ...": why smg_key_parse refused text. */
void smg_key_complaint(const struct smg_key *k, const char *text, int quoted, char *out, size_t out_bytes);
/* "unknown key; did you mean 'prefill.nodes'?" */
void smg_key_unknown(const char *path, char *out, size_t out_bytes);

#endif
