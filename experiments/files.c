#include "experiments/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/text.h"

int smg_file_regular(const char *path, struct smg_diag *diag)
{
    struct stat st;

    if (stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_IO, "%s: expected a file, found a %s", path,
                        S_ISFIFO(st.st_mode)   ? "pipe"
                        : S_ISSOCK(st.st_mode) ? "socket"
                                               : "device");
}

int smg_output_open(const char *path, FILE **out, struct smg_diag *diag)
{
    FILE *f = fopen(path, "w");

    if (!f)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", path, strerror(errno));
    *out = f;
    return SMG_OK;
}

/* The reason of a write that failed while it was buffered is gone: the system is asked again, in a file that is dropped anyway.
 * 0: it takes more now. */
static int ask_again(FILE *f)
{
    static const char zeros[65536];
    size_t left = sizeof zeros;

    while (left) {
        ssize_t n = write(fileno(f), zeros, left);
        if (n < 0)
            return errno;
        left -= (size_t)n;
    }
    return 0;
}

int smg_output_close(FILE *f, const char *path, int status, struct smg_diag *diag)
{
    int failed = ferror(f) != 0, error = failed && !status ? ask_again(f) : 0;

    /* fclose flushes: that is where a full disk shows. */
    if (fclose(f)) {
        error = error ? error : errno;
        failed = 1;
    }
    if (failed && !status)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", path, error ? strerror(error) : "cannot be written");
    return status;
}

int smg_path_join(const char *folder, const char *name, char path[SMG_PATH_MAX])
{
    int n = snprintf(path, SMG_PATH_MAX, "%s/%s", folder, name);

    return n < 0 || n >= SMG_PATH_MAX ? SMG_ERR_RANGE : SMG_OK;
}

static int make_one(const char *path, struct smg_diag *diag)
{
    struct stat st;

    if (!mkdir(path, 0777))
        return SMG_OK;
    if (errno == EEXIST && !stat(path, &st)) {
        if (S_ISDIR(st.st_mode))
            return SMG_OK;
        errno = ENOTDIR;
    }
    return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", path, strerror(errno));
}

int smg_folder_make(const char *path, struct smg_diag *diag)
{
    char part[SMG_PATH_MAX];
    size_t n = strlen(path);
    int status = SMG_OK;

    if (!n || n >= sizeof part)
        return smg_diag_set(diag, SMG_ERR_RANGE, "folder name of %zu characters", n);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i < n && !status; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        status = make_one(part, diag);
        part[i] = '/';
    }
    return status ? status : make_one(part, diag);
}

int smg_folder_probe(const char *path, struct smg_diag *diag)
{
    char probe[SMG_PATH_MAX];
    int fd, status = smg_folder_make(path, diag);

    if (!status && smg_path_join(path, ".probe-XXXXXX", probe))
        status = smg_diag_set(diag, SMG_ERR_RANGE, "%.100s...: name is too long", path);
    if (status)
        return status;
    fd = mkstemp(probe);
    if (fd < 0)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: cannot be written to: %s", path, strerror(errno));
    close(fd);
    unlink(probe);
    return SMG_OK;
}

int smg_folder_lock(const char *path, struct smg_diag *diag)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", path, strerror(errno));
    if (!flock(fd, LOCK_EX | LOCK_NB))
        return SMG_OK; /* open until the process ends */
    if (errno == EWOULDBLOCK) {
        close(fd);
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: another run is writing there", path);
    }
    close(fd);
    return SMG_OK;
}

json_t *smg_json_real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *smg_json_count(double x)
{
    return isfinite(x) && x == floor(x) && fabs(x) < 9007199254740992.0 ? json_integer((json_int_t)x) : smg_json_real(x);
}

json_t *smg_json_hex(uint64_t x)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, x);
    return json_string(text);
}

int smg_json_write(json_t *j, const char *path, struct smg_diag *diag)
{
    FILE *f = NULL;
    int status = j ? smg_output_open(path, &f, diag) : smg_diag_set(diag, SMG_ERR_NOMEM, "%s: out of memory", path);

    if (!status) {
        errno = 0;
        if (json_dumpf(j, f, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) || fputc('\n', f) == EOF)
            status = smg_diag_set(diag, SMG_ERR_IO, "%s: %s", path, errno ? strerror(errno) : "cannot be written");
        status = smg_output_close(f, path, status, diag);
    }
    json_decref(j);
    return status;
}
