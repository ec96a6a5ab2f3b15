/* The record folder while it is written. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

int smg_outdir_begin(const char *path, struct smg_outdir *out, struct smg_diag *diag)
{
    static const char suffix[] = ".tmp-XXXXXX";
    struct smg_outdir o;
    struct stat st;
    size_t n = strlen(path);
    int status;

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (!n || n + sizeof suffix > sizeof o.temporary)
        return smg_diag_set(diag, SMG_ERR_RANGE, "output folder: name of %zu characters", n);
    memcpy(o.path, path, n);
    o.path[n] = '\0';
    memcpy(o.temporary, o.path, n);
    memcpy(o.temporary + n, suffix, sizeof suffix);
    status = make_parent(o.path, diag);
    if (status)
        return status;
    if (!stat(o.path, &st) && !S_ISDIR(st.st_mode))
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o.path, strerror(ENOTDIR));
    if (!mkdtemp(o.temporary))
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o.temporary, strerror(errno));
    *out = o;
    return SMG_OK;
}

int smg_outdir_file(const struct smg_outdir *o, const char *name, char path[SMG_PATH_MAX])
{
    return smg_path_join(o->temporary, name, path);
}

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

int smg_outdir_add(struct smg_outdir *o, struct smg_diag *diag)
{
    int status = smg_folder_make(o->path, diag);

    if (!status)
        status = each_other(o, move_file, diag);
    for (size_t i = 0; i < RECORD_FILES && !status; i++)
        status = move_file(o, record_files[i], diag);
    if (!status && rmdir(o->temporary))
        status = smg_diag_set(diag, SMG_ERR_IO, "%s: %s", o->temporary, strerror(errno));
    if (!status)
        o->temporary[0] = '\0';
    return status;
}

int smg_outdir_commit(struct smg_outdir *o, struct smg_diag *diag)
{
    int status = smg_folder_make(o->path, diag);

    for (size_t i = RECORD_FILES; i-- && !status;)
        status = remove_stale(o, record_files[i], diag);
    return status ? status : smg_outdir_add(o, diag);
}

static int remove_file(const struct smg_outdir *o, const char *name, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];

    (void)diag;
    if (!smg_path_join(o->temporary, name, path))
        unlink(path);
    return SMG_OK; /* what cannot be removed must not keep the rest */
}

void smg_outdir_abort(struct smg_outdir *o)
{
    if (!o->temporary[0])
        return;
    each_other(o, remove_file, NULL);
    for (size_t i = 0; i < RECORD_FILES; i++)
        remove_file(o, record_files[i], NULL);
    rmdir(o->temporary);
    o->temporary[0] = '\0';
}
