/* Private to kernels/: state of an evaluation, and its selectors. */
#ifndef SMG_KERNELS_QUALITY_H
#define SMG_KERNELS_QUALITY_H

#include "kernels/smg_quality.h"

enum { SMG_QUALITY_BUFFERS = 24 };

struct smg_quality_state {
    const struct smg_quality_params *p;
    struct smg_kernels *k;
    uint32_t width, pages; /* d', pages of a prompt */

    /* Memory of the backend; one request at a time. */
    void *buffer[SMG_QUALITY_BUFFERS];
    uint32_t buffers;
    uint32_t *tokens, *n_pages, *k_max;      /* [1] */
    void *q, *key, *q_partial, *key_partial; /* [Hq][d], [tokens][H][d], [Hq][d'], [tokens][H][d'] */
    float *basis, *weight[2];                /* weight: trained, untrained */
    uint8_t *columns;
    uint32_t *q_code, *key_code[2];
    float *norm, *kmin, *kmax, *score, *group;
    uint32_t *count, *keep;
    int32_t *chosen, *index;
    uint32_t *length;

    /* Memory of the host. */
    void *raw;       /* queries or keys as generated */
    float *mass;     /* [H][tokens] softmax weight, mean over the group */
    float *row;      /* [H][tokens] scores of a selector */
    int32_t *order;  /* [H][tokens] its ranking */
    uint32_t *place; /* [H][tokens] place of an entry in the oracle's ranking */
};

int smg_quality_state_create(struct smg_quality_state *s);
void smg_quality_state_destroy(struct smg_quality_state *s);

/* Weights from the calibration request to the backend's memory. */
int smg_quality_calibrate(struct smg_quality_state *s, double loss[2], struct smg_diag *diag);
/* Keys of a request, and what each selector keeps of them. */
int smg_quality_keys(struct smg_quality_state *s, uint64_t request);
/* Queries at a position to s->q. */
int smg_quality_query(struct smg_quality_state *s, uint64_t request, uint32_t position, enum smg_planted_what what);

/* Scores of the queries in s->q to s->row. keep: what the threshold keeps of the tokens, or NULL. */
int smg_quality_exact(struct smg_quality_state *s);
int smg_quality_infinigen(struct smg_quality_state *s, uint32_t *keep);
int smg_quality_hata(struct smg_quality_state *s, int untrained);
/* Ranking to s->order. */
int smg_quality_quest(struct smg_quality_state *s);
/* s->order[H][n] from s->row[H][n]: score descending, id ascending. */
int smg_quality_rank(struct smg_quality_state *s, uint32_t n);

#endif
