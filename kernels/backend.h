/* Private to kernels/: what a backend is made of. */
#ifndef SMG_KERNELS_BACKEND_H
#define SMG_KERNELS_BACKEND_H

#include "kernels/smg_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct smg_threads;

/* Instruction sets of the cpu backend, each a superset of the one before. */
enum smg_isa { SMG_ISA_BASE = 0, SMG_ISA_AVX2 = 1 };

struct smg_stream {
    struct smg_kernels *k;
    void *native;  /* cuda: its stream */
    void *scratch; /* memory of the backend, kept between calls */
    size_t scratch_bytes;
};

struct smg_kernels_type {
    const char *name;
    /* Fills k->where; SMG_ERR_UNSUPPORTED with k->diag. */
    int (*open)(struct smg_kernels *k, const struct smg_kernels_options *options);
    void (*close)(struct smg_kernels *k);
    int (*alloc)(struct smg_kernels *k, size_t bytes, void **out);
    void (*free)(struct smg_kernels *k, void *memory);
    int (*copy)(struct smg_kernels *k, void *to, const void *from, size_t bytes, struct smg_stream *stream);
    int (*fill)(struct smg_kernels *k, void *to, int byte, size_t bytes, struct smg_stream *stream);
    int (*stream_open)(struct smg_kernels *k, struct smg_stream *stream);
    void (*stream_close)(struct smg_kernels *k, struct smg_stream *stream);
    int (*stream_sync)(struct smg_kernels *k, struct smg_stream *stream);
#define SMG_KERNEL_ENTRY(name, text)                                                                                             \
    int (*name)(struct smg_kernels * k, const struct smg_##name##_args *a, struct smg_stream *stream);
    SMG_KERNEL_MAP(SMG_KERNEL_ENTRY)
#undef SMG_KERNEL_ENTRY
};

struct smg_kernels {
    const struct smg_kernels_type *type;
    struct smg_stream own;
    struct smg_threads *threads; /* cpu */
    enum smg_isa isa;            /* cpu */
    char where[128];
    struct smg_diag diag;
};

extern const struct smg_kernels_type smg_kernels_reference, smg_kernels_cpu, smg_kernels_cuda;

/* Opens a backend that the table of names may not hold. */
int smg_kernels_open_type(const struct smg_kernels_type *type, const struct smg_kernels_options *options,
                          struct smg_kernels **out, struct smg_diag *diag);

/* Looks at the sizes before a backend sees them: SMG_OK, SMG_ERR_INVALID with k->diag, or SMG_KERNEL_IDLE: nothing to write. */
enum { SMG_KERNEL_IDLE = 1 };
#define SMG_KERNEL_CHECK(name, text) int smg_check_##name(struct smg_kernels *k, const struct smg_##name##_args *a);
SMG_KERNEL_MAP(SMG_KERNEL_CHECK)
#undef SMG_KERNEL_CHECK
/* "NAME: ..." into k->diag; returns SMG_ERR_INVALID. */
int smg_kernels_refuse(struct smg_kernels *k, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each backend's kernels. A backend is called with sizes that were checked, and a stream that is not NULL. */
#define SMG_KERNEL_BACKENDS(name, text)                                                                                          \
    int smg_reference_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *stream);               \
    int smg_cpu_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *stream);                     \
    int smg_cuda_##name(struct smg_kernels *k, const struct smg_##name##_args *a, struct smg_stream *stream);
SMG_KERNEL_MAP(SMG_KERNEL_BACKENDS)
#undef SMG_KERNEL_BACKENDS

/* Memory of the stream's own, at least so long, aligned to 256 bytes; valid until the next call that asks on this stream. One
 * request per kernel call: divide it. */
int smg_stream_scratch(struct smg_stream *stream, size_t bytes, void **out);

/* Memory of the host, for the reference and cpu backends. */
int smg_host_alloc(struct smg_kernels *k, size_t bytes, void **out);
void smg_host_free(struct smg_kernels *k, void *memory);
int smg_host_copy(struct smg_kernels *k, void *to, const void *from, size_t bytes, struct smg_stream *stream);
int smg_host_fill(struct smg_kernels *k, void *to, int byte, size_t bytes, struct smg_stream *stream);
int smg_host_stream_open(struct smg_kernels *k, struct smg_stream *stream);
void smg_host_stream_close(struct smg_kernels *k, struct smg_stream *stream);
int smg_host_stream_sync(struct smg_kernels *k, struct smg_stream *stream);
#define SMG_HOST_MEMORY                                                                                                              \
    .alloc = smg_host_alloc, .free = smg_host_free, .copy = smg_host_copy, .fill = smg_host_fill,                                \
    .stream_open = smg_host_stream_open, .stream_close = smg_host_stream_close, .stream_sync = smg_host_stream_sync

#ifdef __cplusplus
}
#endif

#endif
