/* Recorded selections: as they are, and with the right checksum; rows of what was accepted are read. The file is mapped into the
 * heap, so that a read behind its end is seen. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/sealed.h"
#include "traces/selection_recording.h"

enum { REQUESTS = 3, STEPS = 3, HEADS = 3 };

/* The linker puts these in the place of the reader's mmap and munmap. */
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);

static void *mapped;

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    /* Only the reader asks for a private mapping of a file to be read. */
    if (fd < 0 || flags != MAP_PRIVATE || protection != PROT_READ || mapped)
        return __real_mmap(at, bytes, protection, flags, fd, offset);
    mapped = malloc(bytes);
    fuzz_must(mapped && pread(fd, mapped, bytes, 0) == (ssize_t)bytes);
    return mapped;
}

int __wrap_munmap(void *at, size_t bytes)
{
    if (at != mapped)
        return __real_munmap(at, bytes);
    free(mapped);
    mapped = NULL;
    return 0;
}

static void read_row(const struct smg_recording *r, uint32_t request, uint32_t step, uint32_t layer, uint32_t head)
{
    uint32_t n = smg_recording_row(r, request, step, layer, head, NULL), tokens = smg_recording_tokens(r, request);
    int32_t *index;

    fuzz_must(n <= smg_recording_k(r, request));
    if (!n)
        return;
    index = malloc(n * sizeof *index);
    fuzz_must(index);
    fuzz_must(smg_recording_row(r, request, step, layer, head, index) == n);
    for (uint32_t i = 0; i < n; i++)
        fuzz_must(index[i] > (i ? index[i - 1] : -1) && (uint32_t)index[i] < tokens);
    free(index);
}

/* Asks for what lies behind each end too. */
static void read_rows(const struct smg_recording *r)
{
    for (uint32_t request = 0; request <= smg_recording_requests(r) && request < REQUESTS; request++)
        for (uint32_t step = 0; step <= smg_recording_steps(r, request) + 1 && step < STEPS; step++)
            for (uint32_t layer = 0; layer <= SMG_MAX_LAYERS; layer++)
                for (uint32_t head = 0; head < HEADS; head++)
                    read_row(r, request, step, layer, head);
}

static void read_file(const void *data, size_t bytes)
{
    struct smg_recording *r;
    struct smg_diag diag = {""};
    int status = smg_recording_open(fuzz_file(0, data, bytes), &r, &diag);

    fuzz_told(status, &diag);
    if (status)
        return;
    read_rows(r);
    smg_recording_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *sealed = fuzz_sealed(data, bytes);

    if (bytes < 8 || memcmp(data, sealed, bytes))
        read_file(data, bytes);
    read_file(sealed, bytes);
    free(sealed);
    return 0;
}
