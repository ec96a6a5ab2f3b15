/* Expected counts of selections: what the layer source knows instead of index lists.
 *
 * The tokens of a selecting layer fall into SMG_TABLE_CLASSES classes of about equal size, from the least to the most attractive.
 * A class knows how often one of its entries is selected in a step, and how often for the first time in step t. The generator
 * makes an entry's fate depend on its position only through the universal weight, so classes by that weight lose nothing; they
 * are measured on requests of their own, not on those that made a profile, so a ranking's luck with its profile is not counted as
 * knowledge. A captured profile makes its classes from its own rows. */
#ifndef SMG_TRACES_SELECTION_TABLE_H
#define SMG_TRACES_SELECTION_TABLE_H

#include <stdint.h>

#include "core/world.h"
#include "traces/generator.h"

#define SMG_TABLE_CLASSES 16u

/* One prompt-length group of a world. */
struct smg_table {
    uint32_t layers, positions, steps; /* steps 0: no first times */
    uint32_t *before; /* [layers][positions + 1][classes] tokens before a position, 2^30 in all over the classes */
    double *select;   /* [layers][classes] */
    double *first;    /* [layers][steps][classes], of steps 1, 2, ... */
};

/* Table of prompts of about `tokens` tokens, measured on the generator. reuse: with first times. */
int smg_table_generate(const struct smg_world *w, const struct smg_generator *g, uint32_t tokens, int reuse,
                       struct smg_table **out);
/* Table of a captured profile's group; first times need its temporal statistics, without them entries are new as often as never.
 */
int smg_table_of_profile(const struct smg_world *w, uint32_t group, int reuse, struct smg_table **out);
void smg_table_destroy(struct smg_table *t);

/* Tokens of each class before token `at` of a prompt of `tokens`, in units of tokens / 2^30. */
void smg_table_before(const struct smg_table *t, uint32_t layer, uint32_t at, uint32_t tokens, uint32_t out[SMG_TABLE_CLASSES]);
/* Sum over the classes of mass times rate: of being selected (step 0), or selected for the first time in a step. */
double smg_table_rate(const struct smg_table *t, uint32_t layer, uint32_t step, const uint32_t mass[SMG_TABLE_CLASSES]);

#endif
