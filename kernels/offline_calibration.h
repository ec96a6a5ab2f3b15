/* Private to kernels/: calibration tensors, checked and by KV head. */
#ifndef SMG_KERNELS_OFFLINE_CALIBRATION_H
#define SMG_KERNELS_OFFLINE_CALIBRATION_H

#include "kernels/smg_offline.h"

/* SMG_ERR_INVALID with a line: sizes that cannot be, an element that is not finite. */
int smg_calibration_check(const struct smg_calibration *c, struct smg_diag *diag);

/* As floats: to[tokens][head_dim]. */
void smg_calibration_keys(const struct smg_calibration *c, uint32_t kv_head, float *to);
/* Those of the KV head's group: to[tokens][q_heads / kv_heads][head_dim]. */
void smg_calibration_queries(const struct smg_calibration *c, uint32_t kv_head, float *to);

#endif
