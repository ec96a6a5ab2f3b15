/* The reader of sweep files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/sweep.h"
#include "experiments/sweep_yaml.h"
#include "traces/scenario.h"
#include "traces/text.h"

enum { SET_BYTES = 256, DEPTH_MAX = 8 };

struct reader {
    struct smg_yaml *y;
    struct smg_diag *diag;
};

static int fail(const struct reader *r, const yaml_node_t *at, const char *what, const char *name)
{
    return smg_yaml_fail(r->y, at, r->diag, SMG_ERR_PARSE, "key '%.60s': %s", name, what);
}

/* ---- Sets ---- */

/* What a scenario would say to this key and value, told with the line it stands in. */
static int check_set(const struct reader *r, const yaml_node_t *at, const char *set)
{
    static const char prefix[] = "--set ";
    struct smg_scenario s;
    struct smg_diag found = {""};
    int status = smg_scenario_load(NULL, &set, 1, &s, &found);
    const char *text = found.text;

    if (!status)
        return SMG_OK;
    text += strncmp(text, prefix, sizeof prefix - 1) ? 0 : sizeof prefix - 1;
    return smg_yaml_fail(r->y, at, r->diag, status, "%s", text);
}

static int append(const struct reader *r, const yaml_node_t *at, const char *text, struct smg_sweep_set *set)
{
    char **grown = realloc(set->text, (set->n + 1) * sizeof *grown);

    if (!grown)
        return smg_yaml_fail(r->y, at, r->diag, SMG_ERR_NOMEM, "out of memory");
    set->text = grown;
    grown[set->n] = strdup(text);
    if (!grown[set->n])
        return smg_yaml_fail(r->y, at, r->diag, SMG_ERR_NOMEM, "out of memory");
    set->n++;
    return SMG_OK;
}

static int take_share(const struct reader *r, const yaml_node_t *value, const char *text, struct smg_sweep_set *set)
{
    double x;

    if (smg_text_double(text, &x) || !(x > 0 && x <= 1))
        return fail(r, value, "expected a share in (0, 1]", "kr_share");
    set->kr_share = x;
    return SMG_OK;
}

static int take_scalar(const struct reader *r, const char *path, const yaml_node_t *value, const char *text,
                       struct smg_sweep_set *set)
{
    char line[SET_BYTES];
    int n, status;

    if (!strcmp(path, "kr_share"))
        return take_share(r, value, text, set);
    n = snprintf(line, sizeof line, "%s=%s", path, text);
    if (n < 0 || n >= (int)sizeof line)
        return fail(r, value, "too long", path);
    status = check_set(r, value, line);
    return status ? status : append(r, value, line, set);
}

/* "a" and "b" are "a.b"; non-zero: too long. */
static int join(const char *prefix, const char *name, char path[SET_BYTES])
{
    int n = snprintf(path, SET_BYTES, "%s%s%s", prefix, prefix[0] ? "." : "", name);

    return n < 0 || n >= SET_BYTES;
}

/* Nested mappings are the same as dotted keys. One that holds nothing is an error: of aliases to such, a small file could make a
 * set that takes for ever to walk, while the first scalar that is nested too deeply ends the walk as an unknown key. */
static int take_set(const struct reader *r, const yaml_node_t *map, const char *prefix, int depth, struct smg_sweep_set *set)
{
    int status = SMG_OK;

    if (map->type != YAML_MAPPING_NODE || depth > DEPTH_MAX || (depth && !smg_yaml_count(map)))
        return smg_yaml_fail(r->y, map, r->diag, SMG_ERR_PARSE, "expected a mapping of scenario keys");
    for (size_t i = 0; i < smg_yaml_count(map) && !status; i++) {
        const yaml_node_t *key, *value;
        const char *name, *text;
        char path[SET_BYTES];
        smg_yaml_pair(r->y, map, i, &key, &value);
        name = smg_yaml_text(key);
        text = smg_yaml_text(value);
        if (!name || join(prefix, name, path))
            return smg_yaml_fail(r->y, key, r->diag, SMG_ERR_PARSE, "expected a scenario key");
        if (smg_yaml_member(r->y, map, name) != value)
            return fail(r, key, "given twice", path);
        status = text ? take_scalar(r, path, value, text, set) : take_set(r, value, path, depth + 1, set);
    }
    return status;
}

/* ---- Axes ---- */

static int take_name(const struct reader *r, const yaml_node_t *at, const char *text, struct smg_sweep_axis *axis)
{
    struct smg_sweep_value *grown;

    if (!text || !text[0] || strlen(text) >= SMG_SWEEP_NAME || strpbrk(text, ",/()\" "))
        return smg_yaml_fail(r->y, at, r->diag, SMG_ERR_PARSE,
                             "expected a name of at most %d characters without blanks , / ( ) \"", SMG_SWEEP_NAME - 1);
    for (size_t i = 0; i < axis->n; i++)
        if (!strcmp(axis->value[i].name, text))
            return fail(r, at, "given twice", text);
    grown = realloc(axis->value, (axis->n + 1) * sizeof *grown);
    if (!grown)
        return smg_yaml_fail(r->y, at, r->diag, SMG_ERR_NOMEM, "out of memory");
    axis->value = grown;
    memset(&grown[axis->n], 0, sizeof *grown);
    grown[axis->n].set.kr_share = NAN;
    memcpy(grown[axis->n++].name, text, strlen(text) + 1);
    return SMG_OK;
}

static int take_values(const struct reader *r, const char *key, const yaml_node_t *list, struct smg_sweep_axis *axis)
{
    int status = SMG_OK;

    if (list->type != YAML_SEQUENCE_NODE || !smg_yaml_count(list))
        return fail(r, list, "expected a list", "values");
    for (size_t i = 0; i < smg_yaml_count(list) && !status; i++) {
        const yaml_node_t *item = smg_yaml_item(r->y, list, i);
        const char *text = smg_yaml_text(item);
        status = take_name(r, item, text, axis);
        if (!status)
            status = take_scalar(r, key, item, text, &axis->value[axis->n - 1].set);
    }
    return status;
}

static int take_points(const struct reader *r, const yaml_node_t *map, struct smg_sweep_axis *axis)
{
    int status = SMG_OK;

    if (map->type != YAML_MAPPING_NODE || !smg_yaml_count(map))
        return fail(r, map, "expected a mapping of names", "points");
    for (size_t i = 0; i < smg_yaml_count(map) && !status; i++) {
        const yaml_node_t *key, *value;
        smg_yaml_pair(r->y, map, i, &key, &value);
        status = take_name(r, key, smg_yaml_text(key), axis);
        if (!status)
            status = take_set(r, value, "", 0, &axis->value[axis->n - 1].set);
    }
    return status;
}

static int take_axis(const struct reader *r, const yaml_node_t *node, struct smg_sweep_axis *axis)
{
    static const char *const names[] = {"axis", "key", "values", "points", NULL};
    char key[SET_BYTES] = "";
    const yaml_node_t *values, *points;
    int status = smg_yaml_keys(r->y, node, names, r->diag);

    if (!status)
        status = smg_yaml_string(r->y, node, "axis", 1, axis->name, sizeof axis->name, r->diag);
    if (!status)
        status = smg_yaml_string(r->y, node, "key", 0, key, sizeof key, r->diag);
    if (status)
        return status;
    values = smg_yaml_member(r->y, node, "values");
    points = smg_yaml_member(r->y, node, "points");
    if (!values == !points || !values != !key[0])
        return smg_yaml_fail(r->y, node, r->diag, SMG_ERR_PARSE, "axis '%s': expected either key and values, or points",
                             axis->name);
    return values ? take_values(r, key, values, axis) : take_points(r, points, axis);
}

static int few_points(const struct smg_sweep *s)
{
    size_t left = SMG_SWEEP_POINTS_MAX;

    for (size_t a = 0; a < s->axes; a++)
        left /= s->axis[a].n;
    return left > 0;
}

static int take_axes(const struct reader *r, const yaml_node_t *node, struct smg_sweep *s)
{
    const yaml_node_t *list = smg_yaml_member(r->y, node, "axes");
    int status = SMG_OK;

    if (!list || list->type != YAML_SEQUENCE_NODE || smg_yaml_count(list) < 1 || smg_yaml_count(list) > SMG_SWEEP_AXES)
        return smg_yaml_fail(r->y, list ? list : node, r->diag, SMG_ERR_PARSE, "key 'axes': expected a list of 1 to %d axes",
                             SMG_SWEEP_AXES);
    for (size_t i = 0; i < smg_yaml_count(list) && !status; i++)
        status = take_axis(r, smg_yaml_item(r->y, list, i), &s->axis[s->axes++]);
    if (!status && !few_points(s))
        status = smg_yaml_fail(r->y, list, r->diag, SMG_ERR_RANGE, "key 'axes': more than %d points", SMG_SWEEP_POINTS_MAX);
    return status;
}

static size_t named_value(const struct smg_sweep_axis *axis, const char *name)
{
    for (size_t i = 0; i < axis->n; i++)
        if (!strcmp(axis->value[i].name, name))
            return i;
    return SIZE_MAX;
}

static int take_speedup(const struct reader *r, const yaml_node_t *root, struct smg_sweep *s)
{
    static const char *const names[] = {"axis", "over", NULL};
    const yaml_node_t *node = smg_yaml_member(r->y, root, "speedup");
    char axis[SMG_SWEEP_NAME], over[SMG_SWEEP_NAME];
    int status;

    s->speedup_axis = -1;
    if (!node)
        return SMG_OK;
    status = smg_yaml_keys(r->y, node, names, r->diag);
    if (!status)
        status = smg_yaml_string(r->y, node, "axis", 1, axis, sizeof axis, r->diag);
    if (!status)
        status = smg_yaml_string(r->y, node, "over", 1, over, sizeof over, r->diag);
    if (status)
        return status;
    for (size_t i = 0; i < s->axes; i++)
        if (!strcmp(s->axis[i].name, axis))
            s->speedup_axis = (int)i;
    if (s->speedup_axis < 0)
        return fail(r, node, "no axis has this name", axis);
    s->speedup_over = named_value(&s->axis[s->speedup_axis], over);
    return s->speedup_over == SIZE_MAX ? fail(r, node, "the axis has no such value", over) : SMG_OK;
}

/* ---- The file ---- */

static int take_run(const struct reader *r, const yaml_node_t *root, struct smg_sweep *s)
{
    static const char *const runs[] = {"sim", "plan", "heat", NULL};
    char run[SMG_SWEEP_NAME] = "sim";
    size_t i = 0;
    int status = smg_yaml_string(r->y, root, "run", 0, run, sizeof run, r->diag);

    if (status)
        return status;
    while (runs[i] && strcmp(runs[i], run))
        i++;
    if (!runs[i])
        return fail(r, smg_yaml_member(r->y, root, "run"), "expected sim, plan or heat", "run");
    s->run = (enum smg_sweep_run)i;
    return SMG_OK;
}

static int take_tokens(const struct reader *r, const yaml_node_t *root, struct smg_sweep *s)
{
    const yaml_node_t *node = smg_yaml_member(r->y, root, "tokens");
    uint64_t n = 0;

    if (!node)
        return SMG_OK;
    if (!smg_yaml_text(node) || smg_text_u64(smg_yaml_text(node), &n) || n < 2 || n > 128)
        return fail(r, node, "expected a number in [2, 128]", "tokens");
    s->tokens = (uint32_t)n;
    return SMG_OK;
}

static int take_texts(const struct reader *r, const yaml_node_t *node, struct smg_sweep *s)
{
    int status = smg_yaml_string(r->y, node, "figure", 1, s->id, sizeof s->id, r->diag);

    if (!status && strpbrk(s->id, ",/()\" ."))
        status = fail(r, smg_yaml_member(r->y, node, "figure"), "expected a plain name", s->id);
    if (!status)
        status = smg_yaml_string(r->y, node, "title", 0, s->title, sizeof s->title, r->diag);
    if (!status)
        status = smg_yaml_string(r->y, node, "caption", 0, s->caption, sizeof s->caption, r->diag);
    return status ? status : smg_yaml_string(r->y, node, "labels", 0, s->labels, sizeof s->labels, r->diag);
}

static int take_all(const struct reader *r, const yaml_node_t *node, struct smg_sweep *s)
{
    static const char *const names[] = {"figure", "title", "caption", "labels", "run", "base", "axes", "speedup", "tokens", NULL};
    const yaml_node_t *base;
    int status = smg_yaml_keys(r->y, node, names, r->diag);

    if (!status)
        status = take_texts(r, node, s);
    if (!status)
        status = take_run(r, node, s);
    if (!status)
        status = take_tokens(r, node, s);
    if (status)
        return status;
    base = smg_yaml_member(r->y, node, "base");
    if (base)
        status = take_set(r, base, "", 0, &s->base);
    if (!status)
        status = take_axes(r, node, s);
    return status ? status : take_speedup(r, node, s);
}

int smg_sweep_of_node(struct smg_yaml *y, const struct yaml_node_s *node, struct smg_sweep *out, struct smg_diag *diag)
{
    struct reader r = {y, diag};
    int status;

    memset(out, 0, sizeof *out);
    out->base.kr_share = NAN;
    snprintf(out->path, sizeof out->path, "%s", y->path);
    status = take_all(&r, node, out);
    if (status)
        smg_sweep_free(out);
    return status;
}

int smg_sweep_read(const char *path, struct smg_sweep *out, struct smg_diag *diag)
{
    struct smg_yaml y;
    int status = smg_yaml_read(path, &y, diag);

    memset(out, 0, sizeof *out);
    if (status)
        return status;
    status = smg_sweep_of_node(&y, smg_yaml_root(&y), out, diag);
    smg_yaml_free(&y);
    return status;
}
