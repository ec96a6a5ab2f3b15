/* A temporary folder for tests that write files, and what such tests ask about files. */
#ifndef SMG_TESTS_FOLDER_FIXTURE_H
#define SMG_TESTS_FOLDER_FIXTURE_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/world_fixture.h"

static inline int folder_setup(void **state)
{
    char *path = strdup("/tmp/smg-test-XXXXXX");

    if (!path || !mkdtemp(path))
        return -1;
    *state = path;
    return 0;
}

static inline int folder_remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int folder_teardown(void **state)
{
    nftw(*state, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return 0;
}

/* PATH/NAME in static storage, overwritten four calls later. */
static inline const char *file_in(const char *path, const char *name)
{
    static char kept[4][2048];
    static int next;
    char text[sizeof kept[0]], *at = kept[next++ % 4]; /* path itself may be an earlier answer */
    int bytes = snprintf(text, sizeof text, "%s/%s", path, name);

    assert_in_range(bytes, 0, sizeof text - 1);
    return memcpy(at, text, (size_t)bytes + 1);
}

static inline int file_exists(const char *path)
{
    struct stat st;

    return !stat(path, &st);
}

/* The whole file, ended by a 0 byte, to be freed. */
static inline char *file_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t bytes;
    char *text;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    bytes = (size_t)ftell(f);
    rewind(f);
    text = calloc(1, bytes + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, bytes, f), bytes);
    fclose(f);
    return text;
}

static inline void file_put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static inline void assert_file_is(const char *path, const char *expected)
{
    char *text = file_text(path);

    assert_string_equal(text, expected);
    free(text);
}

static inline size_t entries_in(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *e;
    size_t n = 0;

    assert_non_null(folder);
    while ((e = readdir(folder)))
        n += e->d_name[0] != '.';
    closedir(folder);
    return n;
}

#endif
