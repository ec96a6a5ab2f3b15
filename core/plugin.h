/* Policy plug-ins: a shared object that brings a scheme, rankings, or both, named by the scenario's key `policy`. It exports one
 * object, `smg_plugin`, defined by SMG_PLUGIN. It is compiled against the installed headers and linked to nothing: the functions
 * it calls are found in the program (or the libsmartgen) that loads it. docs/porting.md has a complete one. */
#ifndef SMG_CORE_PLUGIN_H
#define SMG_CORE_PLUGIN_H

#include <stdint.h>

#include "core/rank.h"
#include "core/scheme.h"
#include "core/status.h"
#include "core/world.h"

#pragma GCC visibility push(default)

/* Changes when a struct below, or the meaning of a field, does. */
#define SMG_PLUGIN_ABI    1u

#define SMG_PLUGIN_SYMBOL "smg_plugin"

struct smg_plugin {
    uint32_t abi;         /* SMG_PLUGIN_ABI */
    uint32_t world_bytes; /* sizeof(struct smg_world) that the plug-in was compiled with: other headers, other layout */
    const char *name;     /* 1..63 bytes */
    const char *doc;      /* one sentence */
    /* Takes the place of the scenario's scheme; NULL: the scenario's scheme stays. */
    const struct smg_scheme *scheme;
    /* Rankings that proactive.ranking may name beside the built-in ones, NULL-terminated; NULL: none. Their names must be new. */
    const struct smg_rank_type *const *rankings;
};

/* SMG_PLUGIN(.name = ..., .doc = ..., ...); */
#define SMG_PLUGIN(...)                                                                                                          \
    extern const struct smg_plugin smg_plugin;                                                                                   \
    const struct smg_plugin smg_plugin = {.abi = SMG_PLUGIN_ABI, .world_bytes = sizeof(struct smg_world), __VA_ARGS__}

/* A ranking that this world knows: the plug-in's, then the built-in ones. NULL: none of that name. */
const struct smg_rank_type *smg_world_ranking(const struct smg_world *w, const char *name);

#pragma GCC visibility pop

#endif
