#include "experiments/distribution.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/files.h"

const char *const smg_sample_fields[] = {"mean", "p50", "p90", "p95", "p99", "max", NULL};

void smg_sample_add(struct smg_sample *s, double x)
{
    if (!isfinite(x))
        return;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        double *grown = realloc(s->value, cap * sizeof *grown);
        if (!grown) {
            s->failed = 1;
            return;
        }
        s->value = grown;
        s->cap = cap;
    }
    s->value[s->n++] = x;
}

void smg_sample_free(struct smg_sample *s)
{
    free(s->value);
    memset(s, 0, sizeof *s);
}

void smg_sample_describe(struct smg_sample *s, double out[SMG_SAMPLE_FIELDS])
{
    static const double quantile[] = {0.5, 0.9, 0.95, 0.99};

    for (size_t i = 0; i < SMG_SAMPLE_FIELDS; i++)
        out[i] = NAN;
    if (!s->n)
        return;
    gsl_sort(s->value, 1, s->n);
    out[0] = gsl_stats_mean(s->value, 1, s->n);
    for (size_t i = 0; i < sizeof quantile / sizeof quantile[0]; i++)
        out[1 + i] = gsl_stats_quantile_from_sorted_data(s->value, 1, s->n, quantile[i]);
    out[SMG_SAMPLE_FIELDS - 1] = s->value[s->n - 1];
}

json_t *smg_sample_json(struct smg_sample *s)
{
    double field[SMG_SAMPLE_FIELDS];
    json_t *j = s->failed ? NULL : json_object();
    int bad = !j;

    if (bad)
        return NULL;
    smg_sample_describe(s, field);
    bad |= json_object_set_new(j, "count", json_integer((json_int_t)s->n));
    for (size_t i = 0; i < SMG_SAMPLE_FIELDS; i++)
        bad |= json_object_set_new(j, smg_sample_fields[i], smg_json_real(field[i]));
    if (!bad)
        return j;
    json_decref(j);
    return NULL;
}

double smg_sample_half_width(const struct smg_sample *s)
{
    if (s->n < 2)
        return NAN;
    return gsl_cdf_tdist_Pinv(0.975, (double)s->n - 1) * gsl_stats_sd(s->value, 1, s->n) / sqrt((double)s->n);
}
