/* Where the keys of a scenario were given: what is found wrong after reading can still name file and line, and a key that was
 * given in vain can be told. */
#ifndef SMG_TRACES_SCENARIO_ORIGIN_H
#define SMG_TRACES_SCENARIO_ORIGIN_H

#include <stddef.h>

#include "core/status.h"
#include "core/world.h"
#include "traces/scenario_keys.h"

/* --set goes last, so it wins over the file. */
struct smg_origin {
    const char *set;     /* the whole KEY=VALUE; NULL: not given so */
    size_t line, column; /* of the value in the file, from 1; 0: not given there */
};

/* The texts are the caller's of smg_scenario_load_origins and must outlive this. */
struct smg_origins {
    const char *file;                    /* NULL: none */
    struct smg_origin key[SMG_KEYS_MAX]; /* in the order of smg_keys */
};

/* Whether a key was given at all. An unknown key was not. */
int smg_origins_given(const struct smg_origins *o, const char *path);
/* "exp.yaml:12:10: " or "--set a.b=c: "; "" when the default holds. */
void smg_origins_text(const struct smg_origins *o, const char *path, char *text, size_t text_bytes);
/* Puts the origin of KEY in front of a message that begins with "key 'KEY'". Others stay as they are. */
void smg_origins_explain(const struct smg_origins *o, struct smg_diag *diag);

typedef void (*smg_warn_fn)(void *arg, const char *text);
/* Calls warn with one line for each key of s that was given, differs from its default, and cannot have an effect. Not for a key
 * of the file whose reason is a --set: the file may serve several runs. And one for a file that gives no key at all. */
void smg_origins_in_vain(const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg);
/* The same for each key emu.* of a --set, where nothing is emulated. A file's keys may be meant for another command. */
void smg_origins_no_emulation(const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg);
/* The same, where nothing is simulated, for the keys of a --set that only a simulation reads. */
void smg_origins_no_simulation(const struct smg_origins *o, const struct smg_scenario *s, smg_warn_fn warn, void *arg);

#endif
