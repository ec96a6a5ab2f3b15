/* Files that end with a checksum: a mutated one is refused at once, so the right checksum is put there. */
#ifndef SMG_TESTS_FUZZ_SEALED_H
#define SMG_TESTS_FUZZ_SEALED_H

#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "traces/importance_bytes.h"

/* The bytes with the checksum of all but the last eight in place of these; to be freed. */
static inline char *fuzz_sealed(const void *data, size_t bytes)
{
    char *copy = fuzz_text(data, bytes);
    uint64_t hash = bytes >= 8 ? smg_fnv1a64(SMG_FNV1A64_START, copy, bytes - 8) : 0;

    for (size_t i = 0; i < 8 && bytes >= 8; i++)
        copy[bytes - 8 + i] = (char)(hash >> 8 * i);
    return copy;
}

#endif
