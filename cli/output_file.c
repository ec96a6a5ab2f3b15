#include "cli/output_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "traces/importance_bytes.h"

const struct smg_output_kind smg_output_importance = {"importance file", "KVIT", NULL};
const struct smg_output_kind smg_output_recording = {"recording of selections", "KVSR", NULL};
const struct smg_output_kind smg_output_heatmap = {"heat map", SMG_HEATMAP_HEADER, ".csv"};

static int ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);

    return n > m && !strcmp(path + n - m, ending);
}

/* A file that cannot be read is somebody else's. */
static int begins_with(const char *path, const char *begins)
{
    char start[128];
    size_t n = strlen(begins), got;
    FILE *f = fopen(path, "rb");

    if (!f)
        return 0;
    got = fread(start, 1, n < sizeof start ? n : sizeof start, f);
    fclose(f);
    return got == n && !memcmp(start, begins, n);
}

static int is_foreign(const char *path, const struct smg_output_kind *kind)
{
    struct stat st;

    if (stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
        return 0;
    return !(kind->ending && ends_in(path, kind->ending)) && !begins_with(path, kind->begins);
}

int smg_output_check(const char *path, const struct smg_output_kind *kind)
{
    struct smg_byte_writer w;
    struct smg_diag diag = {""};
    int status;

    if (is_foreign(path, kind)) {
        fprintf(stderr, "smartgen: %s: exists and is no %s; choose another name\n", path, kind->what);
        return SMG_EXIT_USAGE;
    }
    status = smg_byte_writer_open(path, &w, &diag);
    if (status)
        return smg_cli_fail(status, &diag);
    smg_byte_writer_close(&w, 0, &diag);
    return SMG_EXIT_OK;
}
