#include "traces/scenario_origin.h"

#include <stdio.h>
#include <string.h>

static const struct smg_origin *origin_of(const struct smg_origins *o, const char *path)
{
    const struct smg_key *k = smg_key_find(path);
    size_t n;

    return k != NULL ? &o->key[k - smg_keys(&n)] : NULL;
}

int smg_origins_given(const struct smg_origins *o, const char *path)
{
    const struct smg_origin *at = origin_of(o, path);

    return at != NULL && (at->set != NULL || at->line != 0);
}

void smg_origins_text(const struct smg_origins *o, const char *path, char *text, size_t text_bytes)
{
    const struct smg_origin *at = origin_of(o, path);

    text[0] = '\0';
    if (at != NULL && at->set != NULL) {
        snprintf(text, text_bytes, "--set %.100s: ", at->set);
    } else if (at != NULL && at->line != 0) {
        snprintf(text, text_bytes, "%.250s:%zu:%zu: ", o->file, at->line, at->column);
    }
}

void smg_origins_explain(const struct smg_origins *o, struct smg_diag *diag)
{
    static const char before[] = "key '";
    char path[128], prefix[300];
    const char *start = diag->text + sizeof(before) - 1, *end;
    size_t room = sizeof(diag->text) - 1, used;

    if (strncmp(diag->text, before, sizeof(before) - 1) != 0 || (end = strchr(start, '\'')) == NULL ||
        (size_t)(end - start) >= sizeof(path)) {
        return;
    }
    snprintf(path, sizeof(path), "%.*s", (int)(end - start), start);
    smg_origins_text(o, path, prefix, sizeof(prefix));
    used = strlen(prefix);
    /* What does not fit is cut off at the end, as everywhere in a diag. */
    memmove(diag->text + used, diag->text, room - used);
    memcpy(diag->text, prefix, used);
    diag->text[room] = '\0';
}
