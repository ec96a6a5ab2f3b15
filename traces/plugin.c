#include "traces/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "traces/text.h"

static int known_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) < SMG_NAME_MAX;
}

static int check_rankings(const char *path, const struct smg_rank_type *const *rankings, struct smg_diag *diag)
{
    size_t i, j;

    for (i = 0; rankings != NULL && rankings[i] != NULL; i++) {
        if (!known_name(rankings[i]->name) || rankings[i]->score == NULL) {
            return smg_diag_set(diag, SMG_ERR_INVALID, "%s: rankings[%zu]: expected a name of 1 to %d bytes and a score function",
                                path, i, SMG_NAME_MAX - 1);
        }
        if (smg_rank_find(rankings[i]->name) != NULL) {
            return smg_diag_set(diag, SMG_ERR_INVALID, "%s: rankings[%zu]: '%s' is a built-in ranking; choose another name", path,
                                i, rankings[i]->name);
        }
        for (j = 0; j < i; j++) {
            if (strcmp(rankings[i]->name, rankings[j]->name) == 0) {
                return smg_diag_set(diag, SMG_ERR_INVALID, "%s: rankings[%zu]: '%s' is there twice", path, i, rankings[i]->name);
            }
        }
    }
    return SMG_OK;
}

static int check_plugin(const char *path, const struct smg_plugin *p, struct smg_diag *diag)
{
    if (p->abi != SMG_PLUGIN_ABI) {
        return smg_diag_set(diag, SMG_ERR_UNSUPPORTED, "%s: made for plug-in interface %u, this program has %u; compile it again",
                            path, p->abi, SMG_PLUGIN_ABI);
    }
    if (p->world_bytes != sizeof(struct smg_world)) {
        return smg_diag_set(diag, SMG_ERR_UNSUPPORTED, "%s: compiled with the headers of another version; compile it again",
                            path);
    }
    if (!known_name(p->name)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: expected a name of 1 to %d bytes", path, SMG_NAME_MAX - 1);
    }
    if (p->scheme != NULL && (!known_name(p->scheme->name) || p->scheme->features == NULL)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: scheme: expected a name of 1 to %d bytes and a features function", path,
                            SMG_NAME_MAX - 1);
    }
    if (p->scheme == NULL && (p->rankings == NULL || p->rankings[0] == NULL)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: brings neither a scheme nor a ranking", path);
    }
    return check_rankings(path, p->rankings, diag);
}

/* dlopen would search a bare name in the system's folders. */
static int load(const char *path, void **handle_out, struct smg_diag *diag)
{
    char file[SMG_PATH_MAX + 2];
    struct stat info;
    const char *why;

    if (stat(path, &info) != 0) {
        return smg_diag_set(diag, SMG_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: expected a shared object, found something that is not a file", path);
    }
    snprintf(file, sizeof(file), "%s%s", strchr(path, '/') != NULL ? "" : "./", path);
    *handle_out = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*handle_out == NULL) {
        why = dlerror();
        return smg_diag_set(diag, SMG_ERR_INVALID, "%s: cannot be loaded as a plug-in: %s", path,
                            why != NULL ? why : "unknown reason");
    }
    return SMG_OK;
}

int smg_plugin_open(const char *path, const struct smg_plugin **out, void **handle_out, struct smg_diag *diag)
{
    const struct smg_plugin *p;
    void *handle;
    int status = load(path, &handle, diag);

    if (status != SMG_OK) {
        return status;
    }
    p = dlsym(handle, SMG_PLUGIN_SYMBOL);
    if (p == NULL) {
        status = smg_diag_set(diag, SMG_ERR_INVALID,
                              "%s: exports no '" SMG_PLUGIN_SYMBOL "'; define it with SMG_PLUGIN of core/plugin.h", path);
    } else {
        status = check_plugin(path, p, diag);
    }
    if (status != SMG_OK) {
        dlclose(handle);
        return status;
    }
    *out = p;
    *handle_out = handle;
    return SMG_OK;
}

void smg_plugin_close(void *handle)
{
    if (handle != NULL) {
        dlclose(handle);
    }
}
