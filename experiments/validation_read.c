/* The reader of validation.yaml and validation_reasons.yaml. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/files.h"
#include "experiments/sweep_yaml.h"
#include "experiments/validation.h"
#include "traces/text.h"

void smg_validation_free(struct smg_validation *v)
{
    free(v->row);
    memset(v, 0, sizeof *v);
}

/* ---- Sweeps ---- */

static int take_sweeps(struct smg_yaml *y, struct smg_book *b, struct smg_diag *diag)
{
    const yaml_node_t *list = smg_yaml_member(y, smg_yaml_root(y), "sweeps");
    int status = SMG_OK;

    if (list && list->type != YAML_SEQUENCE_NODE)
        return smg_yaml_fail(y, list, diag, SMG_ERR_PARSE, "key 'sweeps': expected a list");
    for (size_t i = 0; list && i < smg_yaml_count(list) && !status; i++) {
        struct smg_sweep s;
        status = smg_sweep_of_node(y, smg_yaml_item(y, list, i), &s, diag);
        if (!status)
            status = smg_book_add(b, &s, diag);
    }
    return status;
}

/* ---- Rows ---- */

/* The table is a CSV file without quotes. */
static int plain(struct smg_yaml *y, const yaml_node_t *node, const char *text, struct smg_diag *diag)
{
    return strpbrk(text, ",\"\n")
               ? smg_yaml_fail(y, node, diag, SMG_ERR_PARSE, "'%.60s': no comma, quote or line break here", text)
               : SMG_OK;
}

static int take_numbers(struct smg_yaml *y, const yaml_node_t *node, struct smg_validation_row *r, struct smg_diag *diag)
{
    char paper[32] = "", relation[8] = "=";
    int status = smg_yaml_string(y, node, "paper", 0, paper, sizeof paper, diag);

    if (!status)
        status = smg_yaml_string(y, node, "relation", 0, relation, sizeof relation, diag);
    if (status)
        return status;
    r->paper = r->value = NAN;
    if (paper[0] && smg_text_double(paper, &r->paper))
        return smg_yaml_fail(y, node, diag, SMG_ERR_PARSE, "key 'paper': expected a number, found '%s'", paper);
    if (strcmp(relation, "=") && strcmp(relation, "<"))
        return smg_yaml_fail(y, node, diag, SMG_ERR_PARSE, "key 'relation': expected '=' or '<', found '%s'", relation);
    r->relation = relation[0];
    return SMG_OK;
}

static int take_label(struct smg_yaml *y, const yaml_node_t *node, struct smg_validation_row *r, struct smg_diag *diag)
{
    int status = smg_yaml_string(y, node, "label", 1, r->label, sizeof r->label, diag);

    if (status || !strcmp(r->label, "calibrated") || !strcmp(r->label, "predicted"))
        return status;
    return smg_yaml_fail(y, node, diag, SMG_ERR_PARSE, "key 'label': expected calibrated or predicted, found '%s'", r->label);
}

static int take_row(struct smg_yaml *y, const yaml_node_t *node, struct smg_validation_row *r, struct smg_diag *diag)
{
    static const char *const names[] = {"row",   "quantity", "condition", "relation", "paper",
                                        "label", "ours",     "maximum",   "each",     NULL};
    const struct {
        const char *key;
        int required;
        char *out;
        size_t bytes;
    } text[] = {{"row", 1, r->row, sizeof r->row},
                {"quantity", 1, r->quantity, sizeof r->quantity},
                {"condition", 0, r->condition, sizeof r->condition},
                {"maximum", 0, r->maximum, sizeof r->maximum}};
    int status = smg_yaml_keys(y, node, names, diag);

    for (size_t i = 0; i < sizeof text / sizeof text[0] && !status; i++) {
        status = smg_yaml_string(y, node, text[i].key, text[i].required, text[i].out, text[i].bytes, diag);
        if (!status)
            status = plain(y, node, text[i].out, diag);
    }
    if (!status)
        status = smg_yaml_string(y, node, "ours", 1, r->ours, sizeof r->ours, diag);
    if (!status)
        status = take_label(y, node, r, diag);
    return status ? status : take_numbers(y, node, r, diag);
}

/* Puts word in the place of every {}. */
static int replace(char *text, size_t bytes, const char *word)
{
    char out[1024];
    size_t n = 0;

    for (const char *at = text; *at;) {
        int hole = at[0] == '{' && at[1] == '}';
        size_t length = hole ? strlen(word) : 1;
        if (n + length >= bytes || n + length >= sizeof out)
            return SMG_ERR_RANGE;
        memcpy(out + n, hole ? word : at, length);
        n += length;
        at += hole ? 2 : 1;
    }
    memcpy(text, out, n);
    text[n] = '\0';
    return SMG_OK;
}

static int append(struct smg_yaml *y, const yaml_node_t *node, const struct smg_validation_row *row, struct smg_validation *v,
                  struct smg_diag *diag)
{
    struct smg_validation_row *grown;

    for (size_t i = 0; i < v->rows; i++)
        if (!strcmp(v->row[i].row, row->row))
            return smg_yaml_fail(y, node, diag, SMG_ERR_PARSE, "row '%s': given twice", row->row);
    grown = realloc(v->row, (v->rows + 1) * sizeof *grown);
    if (!grown)
        return smg_yaml_fail(y, node, diag, SMG_ERR_NOMEM, "out of memory");
    v->row = grown;
    grown[v->rows] = *row;
    if (row->row[0] == 'P' && row->row[1] >= '0' && row->row[1] <= '9')
        snprintf(grown[v->rows].id, sizeof grown[v->rows].id, "%.*s", (int)strcspn(row->row, "."), row->row);
    v->rows++;
    return SMG_OK;
}

static int append_each(struct smg_yaml *y, const yaml_node_t *node, const struct smg_validation_row *row,
                       struct smg_validation *v, struct smg_diag *diag)
{
    const yaml_node_t *each = smg_yaml_member(y, node, "each");
    int status = SMG_OK;

    if (!each)
        return append(y, node, row, v, diag);
    if (each->type != YAML_SEQUENCE_NODE)
        return smg_yaml_fail(y, each, diag, SMG_ERR_PARSE, "key 'each': expected a list");
    for (size_t i = 0; i < smg_yaml_count(each) && !status; i++) {
        const char *word = smg_yaml_text(smg_yaml_item(y, each, i));
        struct smg_validation_row copy = *row;
        if (!word || replace(copy.row, sizeof copy.row, word) || replace(copy.condition, sizeof copy.condition, word) ||
            replace(copy.quantity, sizeof copy.quantity, word) || replace(copy.ours, sizeof copy.ours, word))
            return smg_yaml_fail(y, each, diag, SMG_ERR_PARSE, "key 'each': expected short texts");
        status = plain(y, each, word, diag);
        if (!status)
            status = append(y, node, &copy, v, diag);
    }
    return status;
}

static int take_rows(struct smg_yaml *y, struct smg_validation *v, struct smg_diag *diag)
{
    const yaml_node_t *list = smg_yaml_member(y, smg_yaml_root(y), "rows");
    int status = SMG_OK;

    if (!list || list->type != YAML_SEQUENCE_NODE)
        return smg_yaml_fail(y, list ? list : smg_yaml_root(y), diag, SMG_ERR_PARSE, "key 'rows': expected a list");
    for (size_t i = 0; i < smg_yaml_count(list) && !status; i++) {
        struct smg_validation_row row;
        memset(&row, 0, sizeof row);
        status = take_row(y, smg_yaml_item(y, list, i), &row, diag);
        if (!status)
            status = append_each(y, smg_yaml_item(y, list, i), &row, v, diag);
    }
    return status;
}

static int read_table(const char *folder, struct smg_book *b, struct smg_validation *v, struct smg_diag *diag)
{
    static const char *const names[] = {"sweeps", "rows", NULL};
    char path[SMG_PATH_MAX];
    struct smg_yaml y;
    int status = smg_path_join(folder, "validation.yaml", path);

    if (!status)
        status = smg_yaml_read(path, &y, diag);
    if (status)
        return status;
    status = smg_yaml_keys(&y, smg_yaml_root(&y), names, diag);
    if (!status)
        status = take_sweeps(&y, b, diag);
    if (!status)
        status = take_rows(&y, v, diag);
    smg_yaml_free(&y);
    return status;
}

/* ---- Reasons ---- */

static struct smg_validation_row *find_row(struct smg_validation *v, const char *name)
{
    for (size_t i = 0; i < v->rows; i++)
        if (!strcmp(v->row[i].row, name))
            return &v->row[i];
    return NULL;
}

static int take_reason(struct smg_yaml *y, size_t i, struct smg_validation *v, struct smg_diag *diag)
{
    static const char *const names[] = {"ours", "text", NULL};
    const yaml_node_t *key, *value;
    struct smg_validation_row *row;
    char ours[32] = "";
    int status;

    smg_yaml_pair(y, smg_yaml_root(y), i, &key, &value);
    row = smg_yaml_text(key) ? find_row(v, smg_yaml_text(key)) : NULL;
    if (!row)
        return smg_yaml_fail(y, key, diag, SMG_ERR_PARSE, "row '%.60s': the table has no such row",
                             smg_yaml_text(key) ? smg_yaml_text(key) : "");
    if (row->reason[0])
        return smg_yaml_fail(y, key, diag, SMG_ERR_PARSE, "row '%s': given twice", row->row);
    status = smg_yaml_keys(y, value, names, diag);
    if (!status)
        status = smg_yaml_string(y, value, "ours", 1, ours, sizeof ours, diag);
    if (!status && smg_text_double(ours, &row->reason_ours))
        status = smg_yaml_fail(y, value, diag, SMG_ERR_PARSE, "key 'ours': expected a number, found '%s'", ours);
    if (!status)
        status = smg_yaml_string(y, value, "text", 1, row->reason, sizeof row->reason, diag);
    return status ? status : plain(y, value, row->reason, diag);
}

static int read_reasons(const char *folder, struct smg_validation *v, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct smg_yaml y;
    int status = smg_path_join(folder, "validation_reasons.yaml", path);

    if (!status)
        status = smg_yaml_read(path, &y, diag);
    if (status)
        return status;
    for (size_t i = 0; i < smg_yaml_count(smg_yaml_root(&y)) && !status; i++)
        status = take_reason(&y, i, v, diag);
    smg_yaml_free(&y);
    return status;
}

int smg_validation_read(const char *folder, struct smg_book *b, struct smg_validation *out, struct smg_diag *diag)
{
    int status;

    memset(out, 0, sizeof *out);
    status = read_table(folder, b, out, diag);
    if (!status)
        status = read_reasons(folder, out, diag);
    if (status)
        smg_validation_free(out);
    return status;
}
