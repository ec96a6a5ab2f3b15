/* smartgen: finds the command and runs it. */
#include "config.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "traces/scenario.h"

const struct smg_command smg_commands[] = {
    {"plan", "[SCENARIO]", "closed-form numbers of a scenario, before anything runs", "set json", 0, 1, smg_cmd_plan},
    {"sim", "[SCENARIO]", "simulate a scenario and write its record folder", "set output engine timeline progress quiet", 0, 1,
     smg_cmd_sim},
    {"emu", "[SCENARIO|bench|measure]",
     "run a scenario on the real transfer engine: one process per instance, real bytes; bench: how fast it is; measure: the NIC "
     "and host "
     "files that a simulation of it needs",
     "set output role router instance token-file fabric device timeout timeline json progress quiet block batch queues entries "
     "entry-bytes depth places memory samples seconds",
     0, 1, smg_cmd_emu},
    {"replay", "DIR", "feed the recorded events of a run to the core again; its actions must be byte-equal", "quiet", 1, 1,
     smg_cmd_replay},
    {"summarize", "DIR...", "mean TTFT, TTST, TBT of runs, with confidence intervals", "", 1, 4096, smg_cmd_summarize},
    {"compare", "DIR DIR",
     "two runs of the same requests: times, bytes and tokens of each, and the error of the first against the second",
     "output tolerance json quiet", 2, 2, smg_cmd_compare},
    {"figures", "[ID...]", "regenerate figures, validation table and report.html (default: all)",
     "output jobs engine progress quiet", 0, 16, smg_cmd_figures},
    {"profile", "[SCENARIO|FILE...]",
     "selections of a scenario -> importance FILE (Eq. 1); look at such files; record selections",
     "set output requests steps record merge inspect check heatmap progress quiet", 0, 2, smg_cmd_profile},
    {"kernels", "ACTION [SCENARIO]",
     "measure: time this machine's kernels, fit the simulator's cost models to the times; quality: recall of each selector on "
     "synthetic "
     "tensors, by share selected; list: the kernels and where they run",
     "set output backend quick heads kv-heads head-dim tokens seed json progress quiet", 1, 2, smg_cmd_kernels},
    {"list", "KIND", "what is built in", "", 1, 1, smg_cmd_list},
    {"doctor", "", "what this machine offers, and what to install for what is missing", "json", 0, 0, smg_cmd_doctor},
    {"completion", "SHELL", "completion script of this program for a shell, on standard output", "", 1, 1, smg_cmd_completion},
    {"help", "[COMMAND]", "this text, or that of a command", "", 0, 1, smg_cmd_help},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

/* For the build. */
static const struct smg_command man = {"man", "", "manual page, as roff on standard output", "", 0, 0, smg_cmd_man};

const struct smg_command *smg_command_find(const char *name)
{
    for (const struct smg_command *c = smg_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return strcmp(name, man.name) ? NULL : &man;
}

int smg_command_unknown(const char *word)
{
    const char *names[SMG_WORDS_MAX], *near;

    smg_words("COMMAND", names);
    near = smg_nearest(word, names);
    fprintf(stderr, "smartgen: unknown command '%s'; %s%s%s\n", word, near ? "did you mean '" : "`smartgen --help` lists them",
            near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

/* The first line is for scripts. */
static void print_version(void)
{
    printf("smartgen %s\n", PACKAGE_VERSION);
#ifdef HAVE_SIMGRID
    printf("simgrid %s\n", SMG_SIMGRID_VERSION);
#else
    printf("simgrid no\n");
#endif
#ifdef HAVE_LIBFABRIC
    printf("libfabric %s, loaded when it is used\n", SMG_LIBFABRIC_VERSION);
#else
    printf("libfabric no\n");
#endif
#ifdef HAVE_VERBS
    printf("verbs yes\n");
#else
    printf("verbs no\n");
#endif
#ifdef HAVE_CUDA
    printf("cuda %s\n", SMG_CUDA_VERSION);
#else
    printf("cuda no\n");
#endif
}

/* Standard output takes all of it, or the program says why not. Nothing else flushes it: the reason comes once. */
static int finish(int code)
{
    int lost = ferror(stdout), error = 0;

    if (fflush(stdout))
        error = errno;
    else if (lost && write(STDOUT_FILENO, "\n", 1) < 0) /* it failed before, and the reason is gone: ask again */
        error = errno;
    if (!lost && !error)
        return code;
    fprintf(stderr, "smartgen: standard output cannot be written%s%s\n", error ? ": " : "", error ? strerror(error) : "");
    return code ? code : SMG_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    const struct smg_command *c;
    struct smg_args args;
    int wants_help = 0;

    gsl_set_error_handler_off(); /* GSL's default is to abort */
    if (argc < 2) {
        smg_help(stderr);
        return SMG_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        smg_help(stdout);
        return finish(SMG_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        print_version();
        return finish(SMG_EXIT_OK);
    }
    c = smg_command_find(argv[1]);
    if (!c)
        return smg_command_unknown(argv[1]);
    if (smg_args_parse(c, argc - 2, argv + 2, &args, &wants_help))
        return SMG_EXIT_USAGE;
    if (wants_help) {
        smg_command_help(c, stdout);
        return finish(SMG_EXIT_OK);
    }
    return finish(c->run(&args));
}
