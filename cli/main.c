/* smartgen: finds the command and runs it. */
#include "config.h"

#include <gsl/gsl_errno.h>
#include <string.h>

#include "cli/cli.h"
#include "traces/scenario.h"

const struct smg_command smg_commands[] = {
    {"plan", "[SCENARIO]", "closed-form numbers of a scenario, before anything runs", "set json", 0, 1, smg_cmd_plan},
    {"sim", "[SCENARIO]", "simulate a scenario and write its record folder", "set output engine timeline quiet", 0, 1,
     smg_cmd_sim},
    {"emu", "[SCENARIO]", "run a scenario on the real transfer engine: one process per instance, real bytes",
     "set output role fabric device timeout quiet", 0, 1, smg_cmd_emu},
    {"replay", "DIR", "feed the recorded events of a run to the core again; its actions must be byte-equal", "quiet", 1, 1,
     smg_cmd_replay},
    {"summarize", "DIR...", "mean TTFT, TTST, TBT of runs, with confidence intervals", "", 1, 4096, smg_cmd_summarize},
    {"figures", "[ID...]",
     "regenerate figures, validation table and report.html (IDs: fig02 fig03 fig05 fig11 fig12 fig13 fig14 fig15 validation; "
     "default: all)",
     "output jobs engine quiet", 0, 16, smg_cmd_figures},
    {"profile", "[SCENARIO|FILE...]",
     "selections of a scenario -> importance FILE (Eq. 1); look at such files; record selections",
     "set output requests steps record merge inspect check heatmap quiet", 0, 2, smg_cmd_profile},
    {"list", "KIND",
     "what is built in: models, gpus, nics, hosts, instances, workloads, lengths, schemes, rankings, selectors, engines, keys", "", 1,
     1,
     smg_cmd_list},
    {"doctor", "", "what this machine offers, and what is missing for what", "", 0, 0, smg_cmd_doctor},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

const struct smg_command *smg_command_find(const char *name)
{
    for (const struct smg_command *c = smg_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static void help(FILE *f)
{
    fprintf(f,
            "smartgen %s: selective KV-cache transfer in prefill/decode-disaggregated LLM inference, simulated and for real\n\n"
            "usage: smartgen COMMAND [OPTION...] [OPERAND...]\n\n",
            PACKAGE_VERSION);
    for (const struct smg_command *c = smg_commands; c->name; c++)
        fprintf(f, "  %-10s %-11s %s\n", c->name, c->usage, c->doc);
    fprintf(f, "\n`smartgen COMMAND --help` tells more. Scenario keys: `smartgen list keys`.\n"
               "Exit status: 0 done, 1 the run failed, 2 bad usage or input.\n");
}

static int unknown(const char *word)
{
    const char *names[32] = {NULL}, *near;
    size_t n = 0;

    for (const struct smg_command *c = smg_commands; c->name && n < 31; c++)
        names[n++] = c->name;
    near = smg_nearest(word, names);
    fprintf(stderr, "smartgen: unknown command '%s'%s%s%s; `smartgen --help` lists them\n", word, near ? "; did you mean '" : "",
            near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const struct smg_command *c;
    struct smg_args args;
    int wants_help = 0, code;

    gsl_set_error_handler_off(); /* GSL's default is to abort */
    if (argc < 2) {
        help(stderr);
        return SMG_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help(stdout);
        return fflush(stdout) ? SMG_EXIT_FAILED : SMG_EXIT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("smartgen %s\n", PACKAGE_VERSION);
        return fflush(stdout) ? SMG_EXIT_FAILED : SMG_EXIT_OK;
    }
    c = smg_command_find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    if (smg_args_parse(c, argc - 2, argv + 2, &args, &wants_help))
        return SMG_EXIT_USAGE;
    if (wants_help) {
        smg_command_help(c, stdout);
        return fflush(stdout) ? SMG_EXIT_FAILED : SMG_EXIT_OK;
    }
    code = c->run(&args);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "smartgen: standard output cannot be written\n");
        return code ? code : SMG_EXIT_FAILED;
    }
    return code;
}
