#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

const struct smg_output_kind smg_output_importance = {"importance file", "KVIT"};
const struct smg_output_kind smg_output_recording = {"recording of selections", "KVSR"};
const struct smg_output_kind smg_output_heatmap = {"heat map", SMG_HEATMAP_HEADER};

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
    return !begins_with(path, kind->begins);
}

/* ---- The temporary file, which is locked as long as this process lives ---- */

static struct {
    char path[SMG_PATH_MAX];
    int fd;
    pid_t owner;
} claimed = {"", -1, 0};

/* Whether the file that is open is still the one of that name. */
static int is_there(const char *path, int fd)
{
    struct stat now, open;

    return !lstat(path, &now) && !fstat(fd, &open) && now.st_ino == open.st_ino && now.st_dev == open.st_dev;
}

/* A file that was finished has its own name by now. */
static void drop(void)
{
    if (claimed.owner == getpid() && is_there(claimed.path, claimed.fd))
        unlink(claimed.path);
}

static int refuse(const char *path, const char *what, const char *why)
{
    fprintf(stderr, "smartgen: %s: %s%s\n", path, what, why);
    return SMG_EXIT_USAGE;
}

/* Where the file system has no locks, nothing is known of others. */
static int claim(const char *path)
{
    struct stat st;

    if (snprintf(claimed.path, sizeof claimed.path, "%s.new", path) >= (int)sizeof claimed.path)
        return refuse(path, "cannot write: ", strerror(ENAMETOOLONG));
    if (!lstat(path, &st) && !S_ISREG(st.st_mode))
        return refuse(path, "not a regular file", "");
    for (;;) {
        claimed.fd = open(claimed.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (claimed.fd < 0)
            return refuse(path, "cannot write: ", strerror(errno));
        if (flock(claimed.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
            close(claimed.fd);
            return refuse(path, "another run is writing there", "");
        }
        if (is_there(claimed.path, claimed.fd))
            break;
        close(claimed.fd); /* finished in between: it has its own name */
    }
    claimed.owner = getpid();
    atexit(drop);
    return SMG_EXIT_OK;
}

int smg_output_check(const char *path, const struct smg_output_kind *kind)
{
    if (!*path) {
        fprintf(stderr, "smartgen: -o: expected the name of a file, found ''\n");
        return SMG_EXIT_USAGE;
    }
    if (is_foreign(path, kind)) {
        fprintf(stderr, "smartgen: %s: exists and is no %s; choose another name\n", path, kind->what);
        return SMG_EXIT_USAGE;
    }
    return claim(path);
}

int smg_output_write(const char *path, void (*write)(const void *what, FILE *f), const void *what)
{
    FILE *f;
    int bad;

    errno = 0; /* a failed write may leave none */
    f = fopen(claimed.path, "w");
    bad = !f;
    if (f) {
        write(what, f);
        bad = fflush(f) != 0 || ferror(f); /* where a full disk shows: the reason is asked before anything else is */
        bad = fclose(f) != 0 || bad;
    }
    bad = bad || rename(claimed.path, path) != 0;
    if (bad)
        fprintf(stderr, "smartgen: %s: cannot write: %s\n", path, errno ? strerror(errno) : "unknown reason");
    return bad ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}
