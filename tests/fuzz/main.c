/* Replays inputs of a fuzz target where there is no fuzzer: fuzz_NAME [FILE | FOLDER]..., without arguments the corpus of NAME.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

enum { PATH_BYTES = 4096, INPUT_BYTES_MAX = 1 << 20 };

static int replay_file(const char *path, size_t *done)
{
    uint8_t *data = malloc(INPUT_BYTES_MAX);
    FILE *f = fopen(path, "rb");
    size_t bytes = data && f ? fread(data, 1, INPUT_BYTES_MAX, f) : 0;
    int bad = !data || !f || ferror(f) || bytes == INPUT_BYTES_MAX;
    uint8_t *exact = bad ? NULL : realloc(data, bytes + !bytes);

    if (f)
        fclose(f);
    if (!exact) {
        fprintf(stderr, "%s: cannot be read: %s\n", path, strerror(errno));
        free(data);
        return 1;
    }
    /* Known before it is needed: a crash leaves no time to say which input it was. */
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
    ++*done;
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int replay(const char *path, size_t *done)
{
    struct dirent **entry;
    struct stat st;
    char name[PATH_BYTES];
    int n, bad = 0;

    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return replay_file(path, done);
    n = scandir(path, &entry, not_hidden, by_name);
    for (int i = 0; i < n; i++) {
        bad |= snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name) >= (int)sizeof name || replay_file(name, done);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return bad || n < 0;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = strstr(slash ? slash : argv[0], "fuzz_");
    char corpus[PATH_BYTES];
    size_t done = 0;
    int bad = 0;

    for (int i = 1; i < argc; i++)
        bad |= replay(argv[i], &done);
    if (argc == 1 && name) {
        snprintf(corpus, sizeof corpus, "%s/fuzz/corpus/%s", SMG_TESTDIR, name + strlen("fuzz_"));
        bad = replay(corpus, &done);
    }
    printf("%zu inputs\n", done);
    return bad || !done;
}
