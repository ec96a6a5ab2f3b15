/* Private to kernels/: the loss of HATA's training, and its gradient. */
#ifndef SMG_KERNELS_OFFLINE_HATA_H
#define SMG_KERNELS_OFFLINE_HATA_H

#include "kernels/smg_offline.h"

/* A query with n keys. */
struct smg_hata_segment {
    const float *q;     /* [d] */
    const float *keys;  /* [n][d] */
    const float *label; /* [n] */
    uint32_t n;
};

/* Memory of a training: most pairs and segments of one batch. */
struct smg_hata_work {
    float *key_hash;   /* [pairs][bits]: h(k), then its gradient */
    float *query_hash; /* [segments][bits] */
    float *query_side; /* [segments][bits]: gradient at the queries */
    float *queries;    /* [segments][d] */
    float *gram;       /* [bits][bits] W^T W - I */
    double *balance;   /* [bits] */
};
int smg_hata_work_create(struct smg_hata_work *w, uint32_t d, uint32_t bits, uint32_t pairs, uint32_t segments);
void smg_hata_work_destroy(struct smg_hata_work *w);

/* Loss of a batch of segments at weight[d][bits]; its gradient to gradient[d][bits]. */
double smg_hata_loss(const struct smg_hata_params *p, uint32_t d, const float *weight, const struct smg_hata_segment *segment,
                     uint32_t segments, struct smg_hata_work *work, float *gradient);

#endif
