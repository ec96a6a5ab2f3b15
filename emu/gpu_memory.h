/* Memory of a GPU that an RDMA adapter reads and writes by itself (GPUDirect RDMA): CUDA hands it out as a dma-buf, which
 * smg_fabric_register_gpu takes. The driver's library is loaded when it is wanted. */
#ifndef SMG_EMU_GPU_MEMORY_H
#define SMG_EMU_GPU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* One allocation of one process: never used across fork(). */
struct smg_gpu_memory {
    uint64_t address; /* of the device; no pointer of the host */
    size_t bytes;     /* a multiple of 2 MiB */
    int dmabuf;       /* file descriptor */
    int device;
};

/* At least `bytes` of memory on a GPU, from 0. SMG_ERR_UNSUPPORTED: no driver, no such GPU, or one that has no dma-buf; diag says
 * which. *out is set only on success; smg_gpu_memory_free ends it. */
int smg_gpu_memory_take(int device, size_t bytes, struct smg_gpu_memory *out, struct smg_diag *diag);
/* Memory registered with a fabric is closed there first. All zero is allowed. */
void smg_gpu_memory_free(struct smg_gpu_memory *m);

/* Copies between the host and [offset, offset + bytes), and waits. SMG_ERR_RANGE: past the end. */
int smg_gpu_memory_put(const struct smg_gpu_memory *m, size_t offset, const void *from, size_t bytes, struct smg_diag *diag);
int smg_gpu_memory_get(const struct smg_gpu_memory *m, size_t offset, void *to, size_t bytes, struct smg_diag *diag);

#endif
