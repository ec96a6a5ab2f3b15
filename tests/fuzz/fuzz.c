#include "tests/fuzz/fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

static int memory_file[FUZZ_SLOTS] = {-1, -1, -1};
static char folder[PATH_BYTES];

void fuzz_broken(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

void fuzz_told(int status, const struct smg_diag *diag)
{
    if (status == SMG_OK || status == SMG_ERR_NOMEM)
        return;
    fuzz_must(diag->text[0]);
    for (const char *c = diag->text; *c; c++)
        fuzz_must((unsigned char)*c >= 0x20 && *c != 0x7f);
}

int fuzz_fd(unsigned slot)
{
    fuzz_must(slot < FUZZ_SLOTS);
    if (memory_file[slot] < 0)
        memory_file[slot] = memfd_create("smartgen-fuzz", MFD_CLOEXEC);
    fuzz_must(memory_file[slot] >= 0);
    return memory_file[slot];
}

const char *fuzz_file(unsigned slot, const void *data, size_t bytes)
{
    static char path[FUZZ_SLOTS][32];
    int fd = fuzz_fd(slot);

    fuzz_must(ftruncate(fd, 0) == 0);
    fuzz_must(pwrite(fd, data, bytes, 0) == (ssize_t)bytes);
    snprintf(path[slot], sizeof path[slot], "/proc/self/fd/%d", fd);
    return path[slot];
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    const char *under = getenv("TMPDIR");

    if (folder[0])
        return folder;
    snprintf(folder, sizeof folder, "%s/smartgen-fuzz-XXXXXX", under && under[0] ? under : "/tmp");
    fuzz_must(mkdtemp(folder));
    fuzz_must(atexit(remove_folder) == 0);
    return folder;
}

const char *fuzz_folder_put(unsigned slot, const char *name, const void *data, size_t bytes)
{
    static char path[FUZZ_SLOTS][2 * PATH_BYTES];
    const char *target = fuzz_file(slot, data, bytes);

    if (path[slot][0])
        return path[slot];
    snprintf(path[slot], sizeof path[slot], "%s/%s", fuzz_folder(), name);
    fuzz_must(symlink(target, path[slot]) == 0);
    return path[slot];
}

char *fuzz_text(const void *data, size_t bytes)
{
    char *text = malloc(bytes + 1);

    fuzz_must(text);
    if (bytes)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}
