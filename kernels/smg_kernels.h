/* Kernels around the KV cache: what prefill and decode nodes compute to select, split, move and read KV entries.
 *
 * One C interface, several backends, chosen at run time:
 *
 *   reference   the plainest loops; what the others are tested against
 *   cpu         vectors and threads; good enough to run the emulation
 *   cuda        a GPU (only where the toolkit was there at build time)
 *
 * Conventions of all kernels:
 * - A call takes one struct of arguments, and the stream last. Shapes are in brackets, row-major and contiguous unless a stride
 * is an argument. Strides and lengths count elements unless they are named _bytes.
 * - Pointers inside the arguments are memory of the backend (smg_memory_alloc); `reference` and `cpu` take any memory.
 * - Elements are of one of three types, accumulated in fp32.
 * - Names of sizes: requests B, q_heads Hq, kv_heads H (Hq = G H, query head h reads KV head h / G), head_dim d, tokens N, k.
 *   "row" b*H + h is one KV head of one request. Requests of a batch may differ in tokens; arrays are padded to a common width.
 * - Sizes of 0 are allowed and do nothing, unless said otherwise. NULL is allowed only where said so.
 * - A status comes back (core/status.h). SMG_ERR_INVALID, with a line in smg_kernels_diag: sizes that do not fit, before anything
 *   is written. What lies in arrays is not checked on the way in: an id outside its range is dropped, as said at each kernel.
 *   Of a GPU, errors of running may come from smg_stream_sync.
 * - A call may run until smg_stream_sync(stream); memory must live until then. Two calls on one stream run in order.
 * - Same arguments, same bits: within a backend results depend neither on threads nor on timing. */
#ifndef SMG_KERNELS_SMG_KERNELS_H
#define SMG_KERNELS_SMG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "kernels/smg_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of one element: 4, 2, 2; 0 for a value that is no type. */
size_t smg_dtype_bytes(enum smg_dtype type);
const char *smg_dtype_name(enum smg_dtype type);

struct smg_kernels; /* an open backend */
struct smg_stream;  /* work in order; with scratch memory of its own. NULL: the backend's own stream */

struct smg_kernels_options {
    uint32_t threads; /* cpu: threads, the calling one included; 0: as many as the process may use */
    uint32_t device;  /* cuda: number of the GPU */
    const char *isa;  /* cpu: "base" or "avx2"; NULL: the best that this machine has */
};

/* Opens a backend by name. options: NULL for all defaults. SMG_ERR_NOT_FOUND: no such name (diag lists them);
 * SMG_ERR_UNSUPPORTED: not built in, or no such device or instruction set, with the reason. Close before a fork, or open after
 * it. */
int smg_kernels_open(const char *name, const struct smg_kernels_options *options, struct smg_kernels **out,
                     struct smg_diag *diag);
void smg_kernels_close(struct smg_kernels *k); /* NULL is fine */
const char *smg_kernels_name(const struct smg_kernels *k);
/* One line about where it runs: "cpu, 2 threads, avx2". */
const char *smg_kernels_where(const struct smg_kernels *k);
/* Why the last call on this backend was refused. */
const char *smg_kernels_diag(const struct smg_kernels *k);
/* Names of the backends that are built in, one after another; NULL at the end. */
const char *smg_kernels_list(uint32_t i);

/* Memory of the backend, aligned to 256 bytes; bytes 0 gives NULL. Contents are undefined. */
int smg_memory_alloc(struct smg_kernels *k, size_t bytes, void **out);
void smg_memory_free(struct smg_kernels *k, void *memory);
/* In order with the stream; either side may be the host's memory. */
int smg_memory_copy(struct smg_kernels *k, void *to, const void *from, size_t bytes, struct smg_stream *stream);
int smg_memory_fill(struct smg_kernels *k, void *to, int byte, size_t bytes, struct smg_stream *stream);

int smg_stream_open(struct smg_kernels *k, struct smg_stream **out);
void smg_stream_close(struct smg_stream *stream);
/* Waits for all that was given to the stream (NULL: the backend's own). */
int smg_stream_sync(struct smg_kernels *k, struct smg_stream *stream);

/* All kernels: name, what it does. Each has its `struct smg_NAME_args` in one of the three headers below, and is called by
 *
 *     int smg_NAME(struct smg_kernels *k, const struct smg_NAME_args *a, struct smg_stream *stream);
 */
#define SMG_KERNEL_MAP(X)                                                                                                        \
    X(importance, "count selected entries by block (Eq. 1)")                                                                     \
    X(importance_mean, "mean importance of the blocks (Eq. 1)")                                                                  \
    X(rotate, "normalise and rotate queries or keys")                                                                            \
    X(project, "rows times a weight matrix")                                                                                     \
    X(skew, "rows in the skewed basis, or some of its columns")                                                                  \
    X(scores, "scaled dot products of queries with keys")                                                                        \
    X(threshold, "InfiniGen: how many entries lie within alpha of the best")                                                     \
    X(group_scores, "scores of query heads to scores of KV heads")                                                               \
    X(topk, "indices of the best scores of each row")                                                                            \
    X(hash_encode, "HATA: bit codes and norms")                                                                                  \
    X(hash_scores, "HATA: scores from Hamming distances")                                                                        \
    X(page_update, "Quest: bounds of pages, brought up to date")                                                                 \
    X(page_scores, "Quest: upper bounds of the scores in a page")                                                                \
    X(page_expand, "Quest: chosen pages to token ids")                                                                           \
    X(split, "split an index by the mask, remote entries first (Algorithm 1)")                                                   \
    X(pack, "token-major KV to blocks")                                                                                          \
    X(unpack, "blocks to token-major KV")                                                                                        \
    X(gather, "entries of blocks into one contiguous reply, or into rows")                                                       \
    X(scatter, "entries of a contiguous reply into rows")                                                                        \
    X(attention, "sparse decode attention over runs of entries")                                                                 \
    X(hack_quantize, "HACK: codes, scales, minima and sums")                                                                     \
    X(hack_dequantize, "HACK: codes back to elements")                                                                           \
    X(hack_attention, "HACK: decode attention on the codes")

#include "kernels/smg_attend.h"
#include "kernels/smg_move.h"
#include "kernels/smg_select.h"

#define SMG_KERNEL_PROTOTYPE(name, text)                                                                                         \
    int smg_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *stream);
SMG_KERNEL_MAP(SMG_KERNEL_PROTOTYPE)
#undef SMG_KERNEL_PROTOTYPE

#ifdef __cplusplus
}
#endif

#endif
