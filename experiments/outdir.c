/* The record folder while it is written. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

/* run.json last: it goes first and comes last, so a folder that has one is complete. */
static const char *const record_files[] = {"requests.csv",  "tokens.csv", "decisions.csv", "summary.json",
                                           "timeline.json", "events.bin", "actions.bin",   "run.json"};

enum { RECORD_FILES = sizeof record_files / sizeof record_files[0] };

static int is_record_file(const char *name)
{
    for (size_t i = 0; i < RECORD_FILES; i++)
        if (!strcmp(record_files[i], name))
            return 1;
    return 0;
}

void smg_outdir_explain(const struct smg_outdir *o, struct smg_diag *diag)
{
    size_t n = strlen(o->temporary), m = strlen(o->path);
    char *at = diag && n ? strstr(diag->text, o->temporary) : NULL;

    for (; at; at = strstr(at + m, o->temporary)) {
        memcpy(at, o->path, m);
        memmove(at + m, at + n, strlen(at + n) + 1);
    }
}

/* Makes the folder that path lies in. */
static int make_parent(const char *path, struct smg_diag *diag)
{
    char parent[SMG_PATH_MAX];
    char *slash;

    memcpy(parent, path, strlen(path) + 1);
    slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return SMG_OK;
    *slash = '\0';
    return smg_folder_make(parent, diag);
}

int smg_outdir_claim(const char *path, struct smg_diag *diag)
{
    char marker[SMG_PATH_MAX];
    struct dirent *entry;
    DIR *folder = opendir(path);
    int others = 0;

    if (!folder)
        return SMG_OK; /* absent, or begin will say what it is */
    while (!others && (entry = readdir(folder)))
        others = strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(folder);
    if (!others || (!smg_path_join(path, "run.json", marker) && !access(marker, F_OK)))
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_INVALID, "%s: not empty, and not a record folder (it has no run.json): choose another",
                        path);
}

/* Calls f for each name in the temporary folder that is not a record file. */
static int each_other(const struct smg_outdir *o, int (*f)(const struct smg_outdir *, const char *, struct smg_diag *),
                      struct smg_diag *diag)
{
    DIR *folder = opendir(o->temporary);
    struct dirent *entry;
    int status = SMG_OK;

    if (!folder)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o->temporary, strerror(errno));
    while (!status && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !is_record_file(entry->d_name))
            status = f(o, entry->d_name, diag);
    closedir(folder);
    return status;
}

static int remove_file(const struct smg_outdir *o, const char *name, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];

    (void)diag;
    if (!smg_path_join(o->temporary, name, path))
        unlink(path);
    return SMG_OK; /* what cannot be removed must not keep the rest */
}

static void empty(const struct smg_outdir *o)
{
    each_other(o, remove_file, NULL);
    for (size_t i = 0; i < RECORD_FILES; i++)
        remove_file(o, record_files[i], NULL);
}

/* ---- Beginning ---- */

/* Fills in the names and makes the parents. */
static int prepare(const char *path, const char *suffix, struct smg_outdir *o, struct smg_diag *diag)
{
    struct stat st;
    size_t n = strlen(path);
    int status;

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (!n || n + strlen(suffix) >= sizeof o->temporary)
        return smg_diag_set(diag, SMG_ERR_RANGE, "output folder: name of %zu characters", n);
    memcpy(o->path, path, n);
    o->path[n] = '\0';
    memcpy(o->temporary, o->path, n);
    memcpy(o->temporary + n, suffix, strlen(suffix) + 1);
    o->lock = -1;
    status = make_parent(o->path, diag);
    if (status || stat(o->path, &st))
        return status;
    if (!S_ISDIR(st.st_mode))
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o->path, strerror(ENOTDIR));
    return access(o->path, W_OK | X_OK) ? smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o->path, strerror(errno)) : SMG_OK;
}

int smg_outdir_begin_shared(const char *path, struct smg_outdir *out, struct smg_diag *diag)
{
    struct smg_outdir o;
    int status = prepare(path, ".tmp-XXXXXX", &o, diag);

    if (status)
        return status;
    if (!mkdtemp(o.temporary))
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o.path, strerror(errno));
    *out = o;
    return SMG_OK;
}

/* Whether the folder that is open is still the one of that name. */
static int is_there(const struct smg_outdir *o)
{
    struct stat now, open;

    return !stat(o->temporary, &now) && !fstat(o->lock, &open) && now.st_ino == open.st_ino && now.st_dev == open.st_dev;
}

/* Makes the temporary folder and locks it: the lock goes with the process, however that ends. SMG_ERR_LOST: the folder that was
 * there is gone, try again. Where the file system has no locks, a folder that is there counts as locked. */
static int take(struct smg_outdir *o, struct smg_diag *diag)
{
    int is_new = !mkdir(o->temporary, 0700), locked, status = SMG_OK;

    if (!is_new && errno != EEXIST)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o->path, strerror(errno));
    o->lock = open(o->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->lock < 0)
        return errno == ENOENT ? SMG_ERR_LOST : smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o->temporary, strerror(errno));
    locked = !flock(o->lock, LOCK_EX | LOCK_NB);
    if (locked && !is_there(o))
        status = SMG_ERR_LOST;
    else if (!locked && errno == EWOULDBLOCK)
        status = smg_diag_set(diag, SMG_ERR_INVALID, "%s: another run is writing there", o->path);
    else if (!locked && !is_new)
        status = smg_diag_set(diag, SMG_ERR_INVALID, "%s: another run is writing there, or one was killed and left %s", o->path,
                              o->temporary);
    if (status)
        close(o->lock);
    else if (!is_new)
        empty(o); /* of a run that was killed */
    return status;
}

int smg_outdir_begin(const char *path, struct smg_outdir *out, struct smg_diag *diag)
{
    struct smg_outdir o;
    int status = prepare(path, ".tmp-run", &o, diag);

    if (status)
        return status;
    do
        status = take(&o, diag);
    while (status == SMG_ERR_LOST);
    if (!status)
        *out = o;
    return status;
}

int smg_outdir_file(const struct smg_outdir *o, const char *name, char path[SMG_PATH_MAX])
{
    return smg_path_join(o->temporary, name, path);
}

/* ---- Ending ---- */

static int exists(const char *path)
{
    struct stat st;

    return !lstat(path, &st);
}

static int too_long(const struct smg_outdir *o, const char *name, struct smg_diag *diag)
{
    return smg_diag_set(diag, SMG_ERR_RANGE, "%s/%s: name is too long", o->path, name);
}

static int remove_stale(const struct smg_outdir *o, const char *name, struct smg_diag *diag)
{
    char written[SMG_PATH_MAX], stale[SMG_PATH_MAX];

    if (smg_path_join(o->temporary, name, written) || smg_path_join(o->path, name, stale))
        return too_long(o, name, diag);
    if (exists(written) && strcmp(name, "run.json"))
        return SMG_OK; /* will be replaced in one step */
    if (unlink(stale) && errno != ENOENT)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", stale, strerror(errno));
    return SMG_OK;
}

static int move_file(const struct smg_outdir *o, const char *name, struct smg_diag *diag)
{
    char from[SMG_PATH_MAX], to[SMG_PATH_MAX];

    if (smg_path_join(o->temporary, name, from) || smg_path_join(o->path, name, to))
        return too_long(o, name, diag);
    if (exists(from) && rename(from, to))
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", to, strerror(errno));
    return SMG_OK;
}

static void release(struct smg_outdir *o)
{
    if (o->lock >= 0)
        close(o->lock);
    o->lock = -1;
    o->temporary[0] = '\0';
}

int smg_outdir_add(struct smg_outdir *o, struct smg_diag *diag)
{
    int status = smg_folder_make(o->path, diag);

    if (!status)
        status = each_other(o, move_file, diag);
    for (size_t i = 0; i < RECORD_FILES && !status; i++)
        status = move_file(o, record_files[i], diag);
    if (!status && rmdir(o->temporary))
        status = smg_diag_set(diag, SMG_ERR_IO, "%s: cannot be removed: %s", o->temporary, strerror(errno));
    if (!status)
        release(o);
    return status;
}

int smg_outdir_commit(struct smg_outdir *o, struct smg_diag *diag)
{
    int status = smg_folder_make(o->path, diag);

    for (size_t i = RECORD_FILES; i-- && !status;)
        status = remove_stale(o, record_files[i], diag);
    return status ? status : smg_outdir_add(o, diag);
}

void smg_outdir_abort(struct smg_outdir *o)
{
    if (!o->temporary[0])
        return;
    empty(o);
    rmdir(o->temporary);
    release(o);
}

int smg_outdir_finish(struct smg_outdir *o, int status, struct smg_diag *diag)
{
    if (!status)
        status = smg_outdir_add(o, diag);
    smg_outdir_explain(o, diag);
    smg_outdir_abort(o);
    return status;
}
