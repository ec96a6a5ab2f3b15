/* A growing set of numbers and what is said about it: count, mean, p50, p90, p95, p99, max. */
#ifndef SMG_EXPERIMENTS_DISTRIBUTION_H
#define SMG_EXPERIMENTS_DISTRIBUTION_H

#include <jansson.h>
#include <stddef.h>

struct smg_sample {
    double *value;
    size_t n, cap;
    int failed; /* an append ran out of memory */
};

/* NULL-terminated: the members of smg_sample_json, in order, after "count". */
extern const char *const smg_sample_fields[];
enum { SMG_SAMPLE_FIELDS = 6 };

/* Appends x; one that is not finite does not exist and is left out. */
void smg_sample_add(struct smg_sample *s, double x);
void smg_sample_free(struct smg_sample *s);
/* Sorts the values and fills out[] in the order of smg_sample_fields; NAN when there is no value. */
void smg_sample_describe(struct smg_sample *s, double out[SMG_SAMPLE_FIELDS]);
/* {"count": n, "mean": ...}. NULL: out of memory, now or at an append. */
json_t *smg_sample_json(struct smg_sample *s);
/* Half the width of the 95% confidence interval of the mean (Student's t); NAN with fewer than two values. */
double smg_sample_half_width(const struct smg_sample *s);

#endif
