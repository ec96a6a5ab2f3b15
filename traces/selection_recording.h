/* Recorded selections: for each request, decode step, selecting layer and KV head the tokens that were picked, as a bitmap.
 *
 * Little-endian, every part 8-byte aligned; docs/selection.md has it byte by byte:
 *     "KVSR"  u32 version = 1  u32 header_bytes  u32 requests  u32 layers  u32 kv_heads  u32 selecting  u32 0
 *     u8 selects[layers], padded with 0; JSON header, padded with blanks to header_bytes
 *     requests times: u32 tokens  u32 steps  u32 k (most entries of a row)  u32 row_bytes  u64 offset of its first row  u64 0
 *     rows of each request: [steps][selecting layers][kv_heads] bitmaps of row_bytes = 8 ceil(tokens / 64)
 *     u64 FNV-1a 64 of all bytes before */
#ifndef SMG_TRACES_SELECTION_RECORDING_H
#define SMG_TRACES_SELECTION_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "core/model.h"
#include "core/status.h"
#include "core/world.h"

#define SMG_RECORDING_VERSION 1u

struct smg_recording;

/* Maps a file and checks all of it. */
int smg_recording_open(const char *path, struct smg_recording **out, struct smg_diag *diag);
void smg_recording_close(struct smg_recording *r);
int smg_recording_synthetic(const struct smg_recording *r);
uint32_t smg_recording_requests(const struct smg_recording *r);
/* Prompt tokens, decode steps and most entries of a row of a request; 0 when the file has no such request. */
uint32_t smg_recording_tokens(const struct smg_recording *r, uint32_t request);
uint32_t smg_recording_steps(const struct smg_recording *r, uint32_t request);
uint32_t smg_recording_k(const struct smg_recording *r, uint32_t request);
/* Tokens of a row, ascending, into index[k] (NULL: only counts); returns how many. 0 for what the file does not hold. */
uint32_t smg_recording_row(const struct smg_recording *r, uint32_t request, uint32_t step, uint32_t layer, uint32_t head,
                           int32_t *index);
/* Whether the recording holds what a world needs: same layers and heads, same prompts, enough steps. */
int smg_recording_fits(const struct smg_recording *r, const struct smg_world *w, struct smg_diag *diag);

/* Records `steps` decode steps (at least 1) of the first `requests` requests of a world from its rows. stop
 * (NULL: never) is asked at each step; non-zero ends the work with SMG_ERR_INTERRUPTED, and no file. */
int smg_recording_write(const char *path, const struct smg_world *w, uint32_t requests, uint32_t steps, int (*stop)(void),
                        struct smg_diag *diag);

#endif
