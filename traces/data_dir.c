#include "traces/data_dir.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/scenario.h"
#include "traces/text.h"
#include "traces/world.h"

#ifndef PKGDATADIR
#define PKGDATADIR "/usr/local/share/smartgen"
#endif

/* An address inside this library, or inside the program that it is linked into. */
static const char library_anchor;

static int is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* up/share/smartgen/folder from where file lies, when it is there. */
static const char *beside(const char *file, const char *up, const char *folder, char path[SMG_PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    int length;

    if (slash == NULL) {
        return NULL;
    }
    length = snprintf(path, SMG_PATH_MAX, "%.*s/%s/share/smartgen/%s", (int)(slash - file), file, up, folder);
    return length > 0 && length < SMG_PATH_MAX && is_folder(path) ? path : NULL;
}

/* A folder of the installed files, found from where the program or the library itself lies, so that an installed tree can be
 * moved; NULL: there is none. */
static const char *beside_program(const char *folder, char path[SMG_PATH_MAX])
{
    char program[SMG_PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    const char *found = NULL;
    Dl_info self;

    if (n > 0) {
        program[n] = '\0';
        found = beside(program, "..", folder, path);
    }
    /* Somebody else's program: the library is in lib/, or in lib/x86_64-linux-gnu/ and the like. */
    if (found == NULL && dladdr(&library_anchor, &self) != 0 && self.dli_fname != NULL) {
        found = beside(self.dli_fname, "..", folder, path);
        found = found != NULL ? found : beside(self.dli_fname, "../..", folder, path);
    }
    return found;
}

const char *smg_shared_folder(const char *variable, const char *folder, const char *in_source, char path[SMG_PATH_MAX])
{
    const char *chosen = getenv(variable);

    if (chosen != NULL && chosen[0] != '\0') {
        return chosen;
    }
    if (beside_program(folder, path) != NULL) {
        return path;
    }
#ifdef SMG_SRCDIR
    if (snprintf(path, SMG_PATH_MAX, "%s/%s", SMG_SRCDIR, in_source) < SMG_PATH_MAX && is_folder(path)) {
        return path;
    }
#else
    (void)in_source;
#endif
    snprintf(path, SMG_PATH_MAX, "%s/%s", PKGDATADIR, folder);
    return path;
}

const char *smg_data_dir(void)
{
    static char path[SMG_PATH_MAX];

    return smg_shared_folder("SMARTGEN_DATA", "data", "traces/data", path);
}

struct names {
    char **name;
    size_t n, cap;
};

static int names_add(struct names *list, const char *text, size_t length)
{
    size_t cap = list->cap == 0 ? 16 : 2 * list->cap;
    char **grown;

    if (list->n + 1 >= list->cap) {
        grown = realloc(list->name, cap * sizeof(*grown));
        if (grown == NULL) {
            return SMG_ERR_NOMEM;
        }
        list->name = grown;
        list->cap = cap;
    }
    list->name[list->n] = strndup(text, length);
    if (list->name[list->n] == NULL) {
        return SMG_ERR_NOMEM;
    }
    list->name[++list->n] = NULL;
    return SMG_OK;
}

static size_t stem_length(const char *file)
{
    size_t length = strlen(file);

    return length > 5 && strcmp(file + length - 5, ".json") == 0 ? length - 5 : 0;
}

static int names_of_folder(const char *folder, struct names *list)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int status = SMG_OK;

    if (dir == NULL) {
        return SMG_ERR_IO;
    }
    while (status == SMG_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.' && stem_length(entry->d_name) > 0) {
            status = names_add(list, entry->d_name, stem_length(entry->d_name));
        }
    }
    closedir(dir);
    return status;
}

static int load_workloads(char path[SMG_PATH_MAX], json_t **out, struct smg_diag *diag)
{
    snprintf(path, SMG_PATH_MAX, "%s/workloads.json", smg_data_dir());
    return smg_file_json(path, out, diag);
}

static int names_of_workloads(struct names *list)
{
    char path[SMG_PATH_MAX];
    const char *name;
    json_t *root, *value;
    int status = load_workloads(path, &root, NULL);

    if (status != SMG_OK) {
        return status;
    }
    json_object_foreach(root, name, value)
    {
        status = status == SMG_OK ? names_add(list, name, strlen(name)) : status;
    }
    json_decref(root);
    return status;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int smg_names_list(const char *kind, char ***out)
{
    struct names list = {calloc(2, sizeof(char *)), 0, 2};
    char folder[SMG_PATH_MAX];
    int status;

    if (list.name == NULL) {
        return SMG_ERR_NOMEM;
    }
    if (strcmp(kind, "workloads") == 0) {
        status = names_of_workloads(&list);
    } else {
        snprintf(folder, sizeof(folder), "%s/%s", smg_data_dir(), kind);
        status = names_of_folder(folder, &list);
    }
    if (status != SMG_OK) {
        smg_names_free(list.name);
        return status;
    }
    qsort(list.name, list.n, sizeof(*list.name), by_text);
    *out = list.name;
    return SMG_OK;
}

void smg_names_free(char **names)
{
    size_t i;

    for (i = 0; names != NULL && names[i] != NULL; i++) {
        free(names[i]);
    }
    free(names);
}

static int unknown_name(const char *kind, const char *noun, const char *name, struct smg_diag *diag)
{
    char hint[160] = "";
    char **names;

    if (smg_names_list(kind, &names) != SMG_OK) {
        return smg_diag_set(diag, SMG_ERR_IO, "%s '%.100s': no data files of %s in %s (set SMARTGEN_DATA)", noun, name, kind,
                            smg_data_dir());
    }
    smg_text_hint(name, (const char *const *)names, hint, sizeof(hint));
    smg_names_free(names);
    if (hint[0] == '\0') {
        snprintf(hint, sizeof(hint), "; `smartgen list %s` names them", kind);
    }
    return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "unknown %s '%.100s'%s", noun, name, hint);
}

static int path_fits(int length, const char *name, struct smg_diag *diag)
{
    if (length < 0 || length >= SMG_PATH_MAX) {
        return smg_diag_set(diag, SMG_ERR_RANGE, "%.100s...: file name too long", name);
    }
    return SMG_OK;
}

int smg_data_resolve(const char *kind, const char *noun, const char *name_or_path, char path[SMG_PATH_MAX], struct smg_diag *diag)
{
    struct stat info;
    int status, folder;

    if (strchr(name_or_path, '/') != NULL || stem_length(name_or_path) > 0) {
        folder = is_folder(name_or_path);
        if (folder && strcmp(kind, "models") != 0) {
            return smg_diag_set(diag, SMG_ERR_IO, "%.300s: is a folder, expected a file that describes a %s", name_or_path, noun);
        }
        return path_fits(snprintf(path, SMG_PATH_MAX, "%s%s", name_or_path, folder ? "/config.json" : ""), name_or_path, diag);
    }
    status = path_fits(snprintf(path, SMG_PATH_MAX, "%s/%s/%s.json", smg_data_dir(), kind, name_or_path), name_or_path, diag);
    if (status == SMG_OK && stat(path, &info) != 0) {
        status = unknown_name(kind, noun, name_or_path, diag);
    }
    return status;
}

/* Last component of path[0, end): starts after the '/' before end. */
static const char *component(const char *path, const char *end)
{
    while (end > path && end[-1] != '/') {
        end--;
    }
    return end;
}

void smg_data_name(const char *path, char name[SMG_NAME_MAX])
{
    const char *end = path + strlen(path), *start = component(path, end);

    if (strcmp(start, "config.json") == 0 && start - 1 > path) {
        end = start - 1;
        start = component(path, end);
    } else if (stem_length(start) > 0) {
        end = start + stem_length(start);
    }
    snprintf(name, SMG_NAME_MAX, "%.*s", (int)(end - start), start);
}

int smg_dataset_tokens(const char *dataset, uint32_t *tokens_out, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    json_t *root, *tokens;
    int status = load_workloads(path, &root, diag);

    if (status != SMG_OK) {
        return status;
    }
    tokens = json_object_get(json_object_get(root, dataset), "value");
    if (json_object_get(root, dataset) == NULL) {
        status = unknown_name("workloads", "data set", dataset, diag);
    } else if (!json_is_integer(tokens) || json_integer_value(tokens) < 1 || json_integer_value(tokens) > 16000000) {
        status = smg_diag_set(diag, SMG_ERR_PARSE, "%s: data set '%s': 'value' must be tokens in [1, 16000000]", path, dataset);
    } else {
        *tokens_out = (uint32_t)json_integer_value(tokens);
    }
    json_decref(root);
    return status;
}
