/* Distributions of prompt and output lengths: pairs of a file, or quantiles of each. */
#ifndef SMG_TRACES_LENGTHS_H
#define SMG_TRACES_LENGTHS_H

#include <stdint.h>

#include "core/rng.h"
#include "core/status.h"

#define SMG_QUANTILES_MAX 256

/* Quantiles of one length; between two of them the distribution is linear. */
struct smg_quantiles {
    uint32_t n;
    double percent[SMG_QUANTILES_MAX]; /* rising from 0 to 100 */
    double tokens[SMG_QUANTILES_MAX];  /* not falling, in [1, 16000000] */
};

struct smg_lengths {
    uint32_t n_pairs;
    uint32_t (*pair)[2]; /* [n_pairs] prompt and output tokens, each >= 1; owned; NULL: the quantiles hold */
    struct smg_quantiles prompt, output;
};

/* A built-in name, a table of quantiles (.json), or any file that holds lengths. On success diag may hold a note about rows that
 * were left out, else it is as it was. End with smg_lengths_close. */
int smg_lengths_open(const char *name_or_path, struct smg_lengths **out, struct smg_diag *diag);
/* A pair of the file, as it stands there; or two independent draws from the quantiles. */
void smg_lengths_draw(const struct smg_lengths *l, struct smg_rng *rng, uint32_t *prompt_out, uint32_t *output_out);
void smg_lengths_close(struct smg_lengths *l);

/* Reads a table of quantiles into l. */
int smg_lengths_read_table(const char *path, struct smg_lengths *l, struct smg_diag *diag);
/* Value of the distribution below which share u of it lies, u in [0, 1). */
double smg_quantiles_at(const struct smg_quantiles *q, double u);
double smg_quantiles_mean(const struct smg_quantiles *q);

#endif
