/* Rows of a KV index: generated, or read from a recording. What stands behind the entry source, the optimal ranking and
 * profiling. */
#ifndef SMG_TRACES_SELECTION_ROWS_H
#define SMG_TRACES_SELECTION_ROWS_H

#include "core/store.h"
#include "core/world.h"
#include "traces/generator.h"
#include "traces/selection_recording.h"

struct smg_rows {
    const struct smg_world *world;
    struct smg_generator *generator; /* NULL: recorded */
    struct smg_recording *recording; /* NULL: generated */
    struct smg_generator_scratch scratch;
    struct smg_store store; /* of weights */
};

/* Rows of a scenario: from selection.file, or generated. The world outlives them. diag may be NULL. */
int smg_rows_create(const struct smg_world *w, struct smg_rows **out, struct smg_diag *diag);
void smg_rows_destroy(struct smg_rows *r);

/* Takes work space and the weights of all requests of the world at once, before the first open. SMG_ERR_NOMEM. */
int smg_rows_reserve(struct smg_rows *r);

/* Entries a row of a selecting layer has at most. */
uint32_t smg_rows_k(const struct smg_rows *r, uint32_t request, uint32_t layer, uint32_t tokens);

/* One selecting layer of one request. All zero: closed. */
struct smg_rows_layer {
    int open;
    uint32_t request, layer, tokens, k;
    struct smg_generator_weight *weight; /* [tokens], generated rows only; owned */
    struct smg_store *store;             /* that weight is of */
};

int smg_rows_open(struct smg_rows *r, uint32_t request, uint32_t layer, uint32_t tokens, struct smg_rows_layer *out);
void smg_rows_close(struct smg_rows_layer *l);
/* Tokens that a head picks in a step (>= 1), ascending: index[k]; returns how many. */
uint32_t smg_rows_get(struct smg_rows *r, const struct smg_rows_layer *l, uint32_t head, uint32_t step, int32_t *index);
uint32_t smg_rows_count(const struct smg_rows *r, const struct smg_rows_layer *l, uint32_t head, uint32_t step);

#endif
