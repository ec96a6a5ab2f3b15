/* A comparison as text, CSV and JSON. */
#include <math.h>
#include <string.h>

#include "experiments/compare.h"
#include "experiments/files.h"
#include "traces/text.h"

const char smg_compare_header[] = "request,token,quantity,unit,a,b,error_percent,synthetic_a,synthetic_b";

static const struct {
    const char *name, *unit;
} names[SMG_COMPARED] = {
    [SMG_COMPARE_TTFT] = {"ttft_s", "s"},
    [SMG_COMPARE_TTST] = {"ttst_s", "s"},
    [SMG_COMPARE_TRANSFER] = {"transfer_s", "s"},
    [SMG_COMPARE_TBT] = {"tbt_mean_s", "s"},
    [SMG_COMPARE_METADATA] = {"metadata_bytes", "B"},
    [SMG_COMPARE_PROACTIVE] = {"proactive_bytes", "B"},
    [SMG_COMPARE_ON_DEMAND] = {"on_demand_bytes", "B"},
    [SMG_COMPARE_SPECULATIVE] = {"speculative_bytes", "B"},
    [SMG_COMPARE_GAP] = {"gap_s", "s"},
};

const char *smg_compared_name(enum smg_compared what)
{
    return names[what].name;
}

const char *smg_compared_unit(enum smg_compared what)
{
    return names[what].unit;
}

/* "-" for what a run does not have. */
static void cell(char text[32], const char *format, double x)
{
    if (isfinite(x))
        snprintf(text, 32, format, x);
    else
        snprintf(text, 32, "-");
}

static void print_row(const struct smg_compare_row *r, FILE *out)
{
    char a[32], b[32], error[32], token[16] = "";

    if (r->token)
        snprintf(token, sizeof token, "%u", r->token);
    cell(a, "%.9g", r->a);
    cell(b, "%.9g", r->b);
    cell(error, "%+.2f", 100 * r->error);
    fprintf(out, "%7u %6s  %-18s %15s %15s %9s\n", r->request, token, names[r->what].name, a, b, error);
}

static void print_summary(const struct smg_comparison *c, FILE *out)
{
    fprintf(out, "\n%-18s %7s %13s %13s %13s\n", "quantity", "rows", "mean |error| %", "max |error| %", "bias %");
    for (size_t k = 0; k < SMG_COMPARED; k++) {
        const struct smg_compare_summary *s = &c->summary[k];
        char mean[32], max[32], bias[32];
        if (!s->rows)
            continue;
        cell(mean, "%.3f", 100 * s->mean);
        cell(max, "%.3f", 100 * s->max);
        cell(bias, "%+.3f", 100 * s->bias);
        fprintf(out, "%-18s %7zu %14s %13s %13s", names[k].name, s->rows, mean, max, bias);
        if (s->n < s->rows)
            fprintf(out, "  without %zu that one run does not have", s->rows - s->n);
        fputc('\n', out);
    }
}

void smg_compare_print(const struct smg_comparison *c, FILE *out)
{
    for (size_t i = 0; i < 2; i++)
        fprintf(out, "%c: %s%s%s\n", i ? 'b' : 'a', c->name[i], c->synthetic[i][0] ? "; synthetic: " : "", c->synthetic[i]);
    if (c->differs[0])
        fprintf(out, "they differ in: %s\n", c->differs);
    fprintf(out, "error: (a - b) / b; transfer_s: TTST less the computing of the decode iteration\n\n");
    fprintf(out, "%7s %6s  %-18s %15s %15s %9s\n", "request", "token", "quantity", "a", "b", "error %");
    for (size_t i = 0; i < c->n; i++)
        print_row(&c->row[i], out);
    print_summary(c, out);
}

static void csv_number(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, ",%.9g", x);
    else
        fputc(',', f);
}

/* "importance+selection": no comma in a cell. */
static void csv_synthetic(FILE *f, const char *what)
{
    fputc(',', f);
    for (; *what; what++)
        if (*what != ' ')
            fputc(*what == ',' ? '+' : *what, f);
}

void smg_compare_csv(const struct smg_comparison *c, FILE *out)
{
    fprintf(out, "%s\n", smg_compare_header);
    for (size_t i = 0; i < c->n; i++) {
        const struct smg_compare_row *r = &c->row[i];
        fprintf(out, "%u,", r->request);
        if (r->token)
            fprintf(out, "%u", r->token);
        fprintf(out, ",%s,%s", names[r->what].name, names[r->what].unit);
        csv_number(out, r->a);
        csv_number(out, r->b);
        csv_number(out, 100 * r->error);
        for (size_t k = 0; k < 2; k++)
            csv_synthetic(out, c->synthetic[k]);
        fputc('\n', out);
    }
}

static json_t *row_json(const struct smg_compare_row *r)
{
    json_t *j = json_pack("{s:I}", "request", (json_int_t)r->request);

    if (j && r->token && json_object_set_new(j, "token", json_integer(r->token)))
        goto lost;
    if (!j || json_object_set_new(j, "quantity", json_string(names[r->what].name)) ||
        json_object_set_new(j, "a", smg_json_real(r->a)) || json_object_set_new(j, "b", smg_json_real(r->b)) ||
        json_object_set_new(j, "error", smg_json_real(r->error)))
        goto lost;
    return j;
lost:
    json_decref(j);
    return NULL;
}

static json_t *summary_json(const struct smg_comparison *c)
{
    json_t *all = json_object();

    for (size_t k = 0; k < SMG_COMPARED && all; k++) {
        const struct smg_compare_summary *s = &c->summary[k];
        json_t *j;
        if (!s->rows)
            continue;
        j = json_pack("{s:I, s:I, s:o, s:o, s:o}", "rows", (json_int_t)s->rows, "compared", (json_int_t)s->n, "mean_error",
                      smg_json_real(s->mean), "max_error", smg_json_real(s->max), "bias", smg_json_real(s->bias));
        if (json_object_set_new(all, names[k].name, j)) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

json_t *smg_compare_json(const struct smg_comparison *c)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < c->n && rows; i++) {
        if (json_array_append_new(rows, row_json(&c->row[i]))) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:s, s:o, s:o, s:o}", "a", c->name[0], "b", c->name[1], "synthetic", "a",
                     c->synthetic[0], "b", c->synthetic[1], "differs", c->differs, "rows", rows, "summary", summary_json(c),
                     "largest_error", smg_json_real(c->largest));
}
