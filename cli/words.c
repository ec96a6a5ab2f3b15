/* Words to choose from: the values of options, operands and scenario keys, from the tables that decide them. */
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"
#include "emu/fabric.h"
#include "experiments/figures.h"
#include "kernels/smg_kernels.h"
#include "sim/engine.h"
#include "traces/scenario_keys.h"

/* ---- Words in capitals ---- */

static size_t copy(const char *const *from, const char **out)
{
    size_t n = 0;

    for (; from[n] && n + 1 < SMG_WORDS_MAX; n++)
        out[n] = from[n];
    out[n] = NULL;
    return n;
}

static size_t engines(const char **out)
{
    size_t n = 0;

    for (; smg_engine_types[n] && n + 1 < SMG_WORDS_MAX; n++)
        out[n] = smg_engine_types[n]->name;
    out[n] = NULL;
    return n;
}

static size_t fabrics(const char **out)
{
    size_t n = 0;

    for (; smg_fabric_types[n] && n + 1 < SMG_WORDS_MAX; n++)
        out[n] = smg_fabric_type_name(smg_fabric_types[n]);
    out[n] = NULL;
    return n;
}

static size_t roles(const char **out)
{
    static const char *const names[] = {"all", "router", "prefill", "decode", "auto", NULL};

    return copy(names, out);
}

static size_t memories(const char **out)
{
    static const char *const names[] = {"host", "gpu", NULL};

    return copy(names, out);
}

static size_t kinds(const char **out)
{
    return copy(smg_list_kinds(), out);
}

static size_t actions(const char **out)
{
    return copy(smg_kernels_actions(), out);
}

static size_t backends(const char **out)
{
    size_t n = 0;

    for (; smg_kernels_list((uint32_t)n) && n + 1 < SMG_WORDS_MAX; n++)
        out[n] = smg_kernels_list((uint32_t)n);
    out[n] = NULL;
    return n;
}

static size_t figures(const char **out)
{
    return copy(smg_figure_ids, out);
}

static size_t shells(const char **out)
{
    static const char *const names[] = {"bash", "zsh", NULL};

    return copy(names, out);
}

static size_t commands(const char **out)
{
    size_t n = 0;

    for (; smg_commands[n].name && n + 1 < SMG_WORDS_MAX; n++)
        out[n] = smg_commands[n].name;
    out[n] = NULL;
    return n;
}

size_t smg_words(const char *kind, const char **out)
{
    static const struct {
        const char *kind;
        size_t (*fill)(const char **out);
    } lists[] = {{"ENGINE", engines}, {"FABRIC", fabrics}, {"ROLE", roles},      {"KIND", kinds},
                 {"ID", figures},     {"SHELL", shells},   {"COMMAND", commands},
                 {"ACTION", actions}, {"BACKEND", backends}, {"MEMORY", memories}};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!strcmp(lists[i].kind, kind))
            return lists[i].fill(out);
    out[0] = NULL;
    return 0;
}

void smg_usage_words(const char *usage, void (*each)(void *arg, const char *word), void *arg)
{
    char word[32];

    while (*usage) {
        size_t n = 0;
        while (isalnum((unsigned char)usage[n]) || usage[n] == '-')
            n++;
        if (n && n < sizeof word) {
            memcpy(word, usage, n);
            word[n] = '\0';
            each(arg, word);
        }
        usage += n ? n : 1;
    }
}

/* ---- Values of scenario keys ---- */

size_t smg_key_words(const struct smg_key *k, const char **out)
{
    static const char *const flag[] = {"true", "false", NULL}, *const tristate[] = {"true", "false", "auto", NULL};
    static const char *const automatic[] = {"auto", NULL}, *const none[] = {NULL};

    switch (k->kind) {
    case SMG_KEY_FLAG:
        return copy(flag, out);
    case SMG_KEY_TRISTATE:
        return copy(tristate, out);
    case SMG_KEY_COUNT_OR_AUTO:
        return copy(automatic, out);
    case SMG_KEY_TEXT:
    case SMG_KEY_CHOICE:
        if (!k->names)
            return copy(strcmp(k->preset, "auto") ? none : automatic, out);
        return copy(k->names, out);
    case SMG_KEY_U32:
    case SMG_KEY_U64:
    case SMG_KEY_NUMBER:
        break;
    }
    return copy(none, out);
}

static int is_kind(const char *name)
{
    for (const char *const *kind = smg_list_kinds(); *kind; kind++)
        if (!strcmp(*kind, name))
            return 1;
    return 0;
}

/* By the last part of the key: prefill.gpu is one of gpus. Any other text may be a path. */
const char *smg_key_names(const struct smg_key *k, int *path_out)
{
    static const struct {
        const char *last, *kind;
        int path; /* a file of one's own will do as well */
    } lists[] = {{"model", "models", 1},       {"gpu", "gpus", 1},          {"nic", "nics", 1},
                 {"instance", "instances", 1}, {"dataset", "workloads", 0}, {"ranking", "rankings", 0},
                 {"host", "hosts", 1}};
    const char *dot = strrchr(k->path, '.'), *last = dot ? dot + 1 : k->path;

    *path_out = k->kind == SMG_KEY_TEXT && !k->names;
    for (size_t i = 0; *path_out && i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].last, last) || !is_kind(lists[i].kind))
            continue;
        *path_out = lists[i].path;
        return lists[i].kind;
    }
    return NULL;
}
