/* Private to cli/: commands and their options. Exit status: 0 done, 1 the run failed, 2 bad usage or input. */
#ifndef SMG_CLI_CLI_H
#define SMG_CLI_CLI_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"
#include "core/world.h"

enum { SMG_EXIT_OK = 0, SMG_EXIT_FAILED = 1, SMG_EXIT_USAGE = 2 };

/* What the options of all commands set. */
struct smg_args {
    const char *sets[256];
    size_t n_sets;
    const char *output; /* -o */
    const char *engine;
    const char *role, *fabric, *device, *router, *token_file;
    uint32_t instance; /* 0: not given */
    unsigned long jobs;
    double timeout_s;
    int json, quiet, progress, timeline;
    int merge, inspect, check, heatmap;
    const char *record;
    int quick;
    uint32_t requests, steps;                                          /* 0: the command's default */
    const char *requests_given;                                        /* the text that requests is made of */
    const char *backend, *heads, *kv_heads, *head_dim, *tokens, *seed; /* kernels: as given, NULL: the command's default */
    const char *block, *batch, *queues, *entries; /* lists of emu bench, NULL: its default; and its numbers, 0 likewise */
    const char *memory; /* --memory, NULL: not given */
    uint32_t entry_bytes, depth, samples, places;
    double seconds;
    double tolerance; /* compare, percent; below 0: none given */
    const char *const *operand;
    size_t n_operands;
};

struct smg_option {
    const char *name;  /* long name without dashes; "": doc is the heading of those that follow */
    char letter;       /* 0: none */
    const char *value; /* what the value is, a word of smg_words() or of the help only; NULL: a switch */
    const char *doc;
};

struct smg_command {
    const char *name;
    const char *usage;   /* operands; words in capitals say what they are, others are meant literally */
    const char *doc;     /* one sentence */
    const char *options; /* long names this command takes, separated by blanks */
    size_t min_operands, max_operands;
    int (*run)(const struct smg_args *a);
};

/* All commands, NULL name at the end; those that only the build and the completion call are not among them. */
extern const struct smg_command smg_commands[];
/* NULL: none. */
const struct smg_command *smg_command_find(const char *name);
/* Says on standard error that there is no such command, and which is near; returns SMG_EXIT_USAGE. */
int smg_command_unknown(const char *word);

/* All options in the order of the help, NULL name at the end. */
extern const struct smg_option smg_options[];
int smg_command_takes(const struct smg_command *c, const struct smg_option *o);

/* Parses argv after the command's name. SMG_ERR_INVALID: message printed. *help: --help was asked for. */
int smg_args_parse(const struct smg_command *c, int argc, char **argv, struct smg_args *out, int *help);
/* Help of one command, and of the program. */
void smg_command_help(const struct smg_command *c, FILE *f);
void smg_help(FILE *f);
/* The i-th example of a command: what to type, and *why_out. NULL: there is none. */
const char *smg_example(const char *command, size_t i, const char **why_out);

/* ---- Words to choose from, taken from the tables that decide them ---- */

enum { SMG_WORDS_MAX = 128 };
/* Fills out[SMG_WORDS_MAX], NULL-terminated, with what a word in capitals (ENGINE, FABRIC, BACKEND, ROLE, KIND, ACTION, ID,
 * SHELL, COMMAND) stands for; returns how many, 0 when it cannot be listed (FILE, N). */
size_t smg_words(const char *kind, const char **out);
/* Calls each(arg, word) for every word of a usage: "[SCENARIO|FILE...]" has SCENARIO and FILE. */
void smg_usage_words(const char *usage, void (*each)(void *arg, const char *word), void *arg);
/* Kinds that `smartgen list` knows, NULL-terminated. */
const char *const *smg_list_kinds(void);
/* What `smartgen kernels` does, NULL-terminated. */
const char *const *smg_kernels_actions(void);

struct smg_key;
/* Fills out[SMG_WORDS_MAX], NULL-terminated, with the values that a scenario key is limited to, or has beside numbers and
 * files. */
size_t smg_key_words(const struct smg_key *k, const char **out);
/* The kind of `smartgen list` that names the key's values ("models"), NULL: none. *path_out: the value may be the path of a
 * file. */
const char *smg_key_names(const struct smg_key *k, int *path_out);

/* Prints "smartgen: text" and returns the exit status that belongs to a status: input errors 2, others 1. A text about a key
 * ("key 'a.b': ...") gets the place in front where this run's scenario gave it. */
int smg_cli_fail(int status, const struct smg_diag *diag);
/* Loads scenario operand 0 (or the defaults) with --set, and extra_set (NULL: none) last. Non-zero: exit status, message printed;
 * that holds for the next two as well. */
int smg_cli_scenario(const struct smg_args *a, const char *extra_set, struct smg_scenario *s);
/* Whether the file or a --set of the scenario loaded last gave a key. */
int smg_cli_given(const char *key);
/* --timeline: writes it, or says that there is no folder to write it to. */
void smg_cli_timeline(const struct smg_args *a, struct smg_world *w);
/* Whether there is such an engine, or fabric (NULL: the default one): an exit status. Says what there is. */
int smg_cli_engine(const char *name);
int smg_cli_fabric(const char *name);
/* Makes the world of that scenario. Paths become absolute in both. Free with smg_world_free. */
int smg_cli_resolve(struct smg_scenario *s, struct smg_world *w);
/* Prints "smartgen: warning: text". */
void smg_cli_warning(void *arg, const char *text);
/* Warns of each key that was given and cannot have an effect, and of weights that no GPU of the world holds. */
void smg_cli_warn(const struct smg_scenario *s, const struct smg_world *w);
/* All three, where nothing is emulated. */
int smg_cli_world(const struct smg_args *a, const char *extra_set, struct smg_scenario *s, struct smg_world *w);

/* "synthetic: importance selection workload tensors": what of a world was generated, on a line of its own; nothing when nothing
 * was. tensors: kernels computed on planted ones. */
void smg_cli_synthetic(const struct smg_world *w, int tensors, const char *indent);

int smg_cmd_plan(const struct smg_args *a);
int smg_cmd_sim(const struct smg_args *a);
int smg_cmd_emu(const struct smg_args *a);
int smg_emu_bench(const struct smg_args *a);
int smg_emu_measure_files(const struct smg_args *a);
int smg_cmd_replay(const struct smg_args *a);
int smg_cmd_summarize(const struct smg_args *a);
int smg_cmd_compare(const struct smg_args *a);
int smg_cmd_figures(const struct smg_args *a);
int smg_cmd_list(const struct smg_args *a);
int smg_cmd_kernels(const struct smg_args *a);
int smg_cmd_doctor(const struct smg_args *a);
int smg_cmd_profile(const struct smg_args *a);
int smg_cmd_completion(const struct smg_args *a);
int smg_cmd_help(const struct smg_args *a);
int smg_cmd_man(const struct smg_args *a);
void smg_completion_bash(FILE *f);
void smg_completion_zsh(FILE *f);

#endif
