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
    const char *output;          /* -o */
    const char *engine;
    const char *role, *fabric, *device;
    unsigned long jobs;
    double timeout_s;
    int json, quiet, timeline;
    int merge, inspect, check, heatmap;
    const char *record;
    uint32_t requests, steps;    /* 0: the command's default */
    const char *const *operand;
    size_t n_operands;
};

struct smg_option {
    const char *name;            /* long name without dashes */
    char letter;                 /* 0: none */
    const char *value;           /* name of the value in the help, NULL: a switch */
    const char *doc;
};

struct smg_command {
    const char *name;
    const char *usage;           /* operands, for the help */
    const char *doc;             /* one sentence */
    const char *options;         /* long names this command takes, separated by blanks */
    size_t min_operands, max_operands;
    int (*run)(const struct smg_args *a);
};

/* All commands, NULL name at the end. */
extern const struct smg_command smg_commands[];
const struct smg_command *smg_command_find(const char *name);

/* Parses argv after the command's name. SMG_ERR_INVALID: message printed. *help: --help was asked for. */
int smg_args_parse(const struct smg_command *c, int argc, char **argv, struct smg_args *out, int *help);
void smg_command_help(const struct smg_command *c, FILE *f);

/* Prints "smartgen: text" and returns the exit status that belongs to a status: input errors 2, others 1. */
int smg_cli_fail(int status, const struct smg_diag *diag);
/* Loads scenario operand 0 (or the defaults) with --set into a world; non-zero: exit status, message printed. Free with
 * smg_world_free. */
int smg_cli_world(const struct smg_args *a, const char *extra_set, struct smg_scenario *s, struct smg_world *w);

int smg_cmd_plan(const struct smg_args *a);
int smg_cmd_sim(const struct smg_args *a);
int smg_cmd_emu(const struct smg_args *a);
int smg_cmd_replay(const struct smg_args *a);
int smg_cmd_summarize(const struct smg_args *a);
int smg_cmd_figures(const struct smg_args *a);
int smg_cmd_list(const struct smg_args *a);
int smg_cmd_doctor(const struct smg_args *a);
int smg_cmd_profile(const struct smg_args *a);

#endif
