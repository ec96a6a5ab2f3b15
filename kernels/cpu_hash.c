/* HATA: codes of vectors, three at a time against 32 columns of the weight; scores by tiles of tokens. */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/threads.h"
#include "kernels/vec.h"

enum { MOST_WIDTH = 1024, TILE = 64 };

struct encode_job {
    const struct smg_hash_encode_args *a;
    uint64_t items; /* of a KV head: three vectors each */
};

struct hash_scores_job {
    const struct smg_hash_scores_args *a;
    uint64_t tiles; /* of a request */
};

#define SMG_ISA_NAME(name) name##_base
#include "kernels/cpu_hash_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_begin.inc"
#define SMG_ISA_NAME(name) name##_avx2
#include "kernels/cpu_hash_loops.inc"
#undef SMG_ISA_NAME
#include "kernels/isa_avx2_end.inc"

#define LOOP(name) (k->isa == SMG_ISA_AVX2 ? name##_avx2 : name##_base)

int smg_cpu_hash_encode(struct smg_kernels *k, const struct smg_hash_encode_args *a, struct smg_stream *stream)
{
    struct encode_job job = {a, ((uint64_t)a->rows * (a->heads / a->kv_heads) + 2) / 3};

    (void)stream;
    smg_threads_run(k->threads, job.items * a->kv_heads, 4, LOOP(encode_vectors), &job);
    return SMG_OK;
}

int smg_cpu_hash_scores(struct smg_kernels *k, const struct smg_hash_scores_args *a, struct smg_stream *stream)
{
    struct hash_scores_job job = {a, ((uint64_t)a->max_tokens + TILE - 1) / TILE};

    (void)stream;
    smg_threads_run(k->threads, job.tiles * a->requests, 4, LOOP(hash_tiles), &job);
    return SMG_OK;
}
