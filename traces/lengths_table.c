/* Tables of quantiles: {"prompt_tokens": FACT, "output_tokens": FACT, "prompt_mean": FACT, "output_mean": FACT}, each FACT
 * {"value", "unit", "source", "derivation"}. A table's value is a list of [percent, tokens]; a mean, where it is known, checks
 * that the quantiles are dense enough for the straight lines between them. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "traces/lengths.h"
#include "traces/text.h"
#include "traces/trace_rows.h"

#define MEAN_TOLERANCE 0.02 /* of the mean, between a table and the data that it was made from */

static const char *const keys[] = {"prompt_tokens", "output_tokens", "prompt_mean", "output_mean", NULL};
static const char *const parts[] = {"value", "unit", "source", "derivation", NULL};

struct file {
    const char *path;
    const json_t *root;
    struct smg_diag *diag;
};

/* "FILE: key 'KEY': WHAT". */
static int bad(const struct file *f, const char *key, const char *what)
{
    return smg_diag_set(f->diag, SMG_ERR_PARSE, "%s: key '%s': %s", f->path, key, what);
}

static int known(const struct file *f, const json_t *object, const char *under, const char *const *names)
{
    const char *name;
    json_t *value;
    char hint[160];
    size_t i;

    json_object_foreach((json_t *)object, name, value)
    {
        for (i = 0; names[i] != NULL && strcmp(names[i], name) != 0; i++) {
        }
        if (names[i] == NULL) {
            smg_text_hint(name, names, hint, sizeof(hint));
            return smg_diag_set(f->diag, SMG_ERR_PARSE, "%s: key '%s%s%.60s': unknown key%s", f->path, under,
                                under[0] != '\0' ? "." : "", name, hint);
        }
    }
    return SMG_OK;
}

/* The value of a fact, NULL when the key is absent. */
static int fact(const struct file *f, const char *key, const char *unit, const json_t **value)
{
    const json_t *object = json_object_get(f->root, key);
    const char *found = json_string_value(json_object_get(object, "unit"));
    char what[128];
    int status;

    *value = NULL;
    if (object == NULL) {
        return SMG_OK;
    }
    if (!json_is_object(object)) {
        return bad(f, key, "expected {\"value\", \"unit\", \"source\", \"derivation\"}");
    }
    status = known(f, object, key, parts);
    if (status != SMG_OK) {
        return status;
    }
    if (found == NULL || strcmp(found, unit) != 0) {
        snprintf(what, sizeof(what), "'unit': expected \"%s\", found \"%.40s\"", unit, found != NULL ? found : "");
        return bad(f, key, what);
    }
    if (!json_is_string(json_object_get(object, "source"))) {
        return bad(f, key, "'source' is missing: where does the value come from?");
    }
    *value = json_object_get(object, "value");
    return SMG_OK;
}

/* One [percent, tokens], which continues the table. */
static int read_quantile(const struct file *f, const char *key, const json_t *pair, struct smg_quantiles *q)
{
    double percent = json_number_value(json_array_get(pair, 0)), tokens = json_number_value(json_array_get(pair, 1));
    uint32_t n = q->n;
    char what[160];

    if (json_array_size(pair) != 2 || !json_is_number(json_array_get(pair, 0)) || !json_is_number(json_array_get(pair, 1))) {
        snprintf(what, sizeof(what), "quantile %u: expected [percent, tokens]", n);
    } else if (!(percent <= 100) || (n == 0 ? percent != 0 : percent <= q->percent[n - 1])) {
        snprintf(what, sizeof(what), "quantile %u: expected percents that rise from 0 to 100, found %g", n, percent);
    } else if (!(tokens >= 1 && tokens <= SMG_TRACE_TOKENS_MAX) || (n > 0 && tokens < q->tokens[n - 1])) {
        snprintf(what, sizeof(what), "quantile %u: expected tokens in [1, 16000000] that do not fall, found %g", n, tokens);
    } else {
        q->percent[n] = percent;
        q->tokens[n] = tokens;
        q->n++;
        return SMG_OK;
    }
    return bad(f, key, what);
}

static int read_quantiles(const struct file *f, const char *key, struct smg_quantiles *q)
{
    const json_t *value;
    size_t i, n;
    int status = fact(f, key, "%, tokens", &value);

    n = json_array_size(value);
    if (status == SMG_OK && (n < 2 || n > SMG_QUANTILES_MAX)) {
        return bad(f, key, "'value': expected a list of 2 to 256 quantiles [percent, tokens]");
    }
    for (i = 0; i < n && status == SMG_OK; i++) {
        status = read_quantile(f, key, json_array_get(value, i), q);
    }
    if (status == SMG_OK && q->percent[n - 1] != 100) {
        return bad(f, key, "'value': expected a last quantile at 100 %");
    }
    return status;
}

static int check_mean(const struct file *f, const char *key, const struct smg_quantiles *q)
{
    double mean = smg_quantiles_mean(q), stated;
    const json_t *value;
    char what[160];
    int status = fact(f, key, "tokens", &value);

    if (status != SMG_OK || json_object_get(f->root, key) == NULL) {
        return status;
    }
    stated = json_number_value(value);
    if (!json_is_number(value) || !(fabs(mean - stated) <= MEAN_TOLERANCE * stated)) {
        snprintf(what, sizeof(what), "'value': expected the mean of the quantiles, %g, within 2%%, found %g", mean, stated);
        return bad(f, key, what);
    }
    return SMG_OK;
}

int smg_lengths_read_table(const char *path, struct smg_lengths *l, struct smg_diag *diag)
{
    struct file f = {.path = path, .diag = diag};
    json_t *root;
    int status = smg_file_json(path, &root, diag);

    if (status != SMG_OK) {
        return status;
    }
    f.root = root;
    status = known(&f, root, "", keys);
    if (status == SMG_OK) {
        status = read_quantiles(&f, "prompt_tokens", &l->prompt);
    }
    if (status == SMG_OK) {
        status = read_quantiles(&f, "output_tokens", &l->output);
    }
    if (status == SMG_OK) {
        status = check_mean(&f, "prompt_mean", &l->prompt);
    }
    if (status == SMG_OK) {
        status = check_mean(&f, "output_mean", &l->output);
    }
    json_decref(root);
    return status;
}
