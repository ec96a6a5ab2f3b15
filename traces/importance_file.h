/* Importance files: a profile with its groups, variance, data sets and temporal statistics, versioned and checksummed.
 *
 * Little-endian, sections 8-byte aligned; docs/selection.md has it byte by byte:
 *     "KVIT"  u32 version = 1  u32 header_bytes  JSON header, padded with blanks to header_bytes
 *     each group: u32 n_lo  u32 n_hi  u32 requests  u32 steps  f32 importance[L][M]  f32 variance[L][M]
 *                 u32 D  u32 0  f32 importance_d[D][L][M], padded
 *     optional: "OVLP"  u32 T  f32 overlap[L][T]  f32 newrate[L][T]
 *     u64 FNV-1a 64 of all bytes before */
#ifndef SMG_TRACES_IMPORTANCE_FILE_H
#define SMG_TRACES_IMPORTANCE_FILE_H

#include <stdint.h>

#include "core/importance.h"
#include "core/model.h"
#include "core/status.h"

#define SMG_IMPORTANCE_VERSION 1u
#define SMG_DATASETS_MAX       32u

/* What the header says beside the geometry. */
struct smg_importance_info {
    char model[SMG_NAME_MAX], selector[SMG_NAME_MAX], created_by[SMG_NAME_MAX];
    char dataset[SMG_DATASETS_MAX][SMG_NAME_MAX]; /* [datasets] */
    uint32_t kv_heads, head_dim;
    double cap;
    uint64_t seed;
};

/* Writes im; variance and the counts of the groups must be there. */
int smg_importance_write(const char *path, const struct smg_importance *im, const struct smg_importance_info *info,
                         struct smg_diag *diag);
/* Reads and checks a file. info may be NULL. Messages name file, offset, field and what was expected. */
int smg_importance_read(const char *path, struct smg_importance **out, struct smg_importance_info *info, struct smg_diag *diag);
/* Same layers and KV heads as the model? The number of blocks is free: rows are resampled. */
int smg_importance_fits(const char *path, const struct smg_importance *im, const struct smg_importance_info *info,
                        const struct smg_model *m, struct smg_diag *diag);
/* Mean of two profiles, weighted by requests, group by group (same bounds); data sets of both. */
int smg_importance_merge(const struct smg_importance *a, const struct smg_importance_info *info_a, const struct smg_importance *b,
                         const struct smg_importance_info *info_b, struct smg_importance **out,
                         struct smg_importance_info *info_out, struct smg_diag *diag);

#endif
