/* What fuzz targets share. A target is one file fuzz_NAME.c with the function that libFuzzer calls for each input; a build
 * without the fuzzer links main.c instead, which replays the corpus of the target. */
#ifndef SMG_TESTS_FUZZ_FUZZ_H
#define SMG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Takes any bytes. Crashes, leaks, hangs, great allocations and properties that do not hold are findings. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A property that holds for every input; not compiled out. */
#define fuzz_must(condition) ((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition))
void fuzz_broken(const char *file, int line, const char *condition) __attribute__((noreturn));

/* An error has a message of one line; only a lack of memory may be told without. */
void fuzz_told(int status, const struct smg_diag *diag);

/* A file in memory that holds the bytes. The path of a slot is always the same, the next call with that slot replaces the bytes.
 */
enum { FUZZ_SLOTS = 3 };
const char *fuzz_file(unsigned slot, const void *data, size_t bytes);
/* The file descriptor behind a slot. */
int fuzz_fd(unsigned slot);
/* A folder in which each name put there is a link to such a file; made by the first call, removed at exit. */
const char *fuzz_folder(void);
const char *fuzz_folder_put(unsigned slot, const char *name, const void *data, size_t bytes);

/* Copies of the bytes, ended by a 0 byte, on the heap: reads behind the end are seen. */
char *fuzz_text(const void *data, size_t bytes);

#endif
