/* Help texts, from the tables of commands and options; and the examples, which the man page shows too. */
#include "config.h"

#include <string.h>

#include "cli/cli.h"

/* What to type after the program's name, and why. Each command has at least one. */
static const struct {
    const char *command, *text, *why;
} examples[] = {
    {"plan", "plan", "the default scenario: three machines of prefill, one of decode"},
    {"plan", "plan --set decode.link_gbps=100 --set model=llama-3.1-8b", "another link and another model"},
    {"plan", "plan night.yaml --json", "for scripts"},
    {"sim", "sim -o out/smartgen", "the default scenario, into a record folder"},
    {"sim", "sim --set scheme=full -o out/full", "full transfer, to compare with"},
    {"sim", "sim night.yaml --engine native --timeline -o out/night", "a file, without SimGrid, with a trace for Perfetto"},
    {"emu", "emu experiments/emu-small.yaml -o out/emu", "real bytes between processes on this host, each one verified"},
    {"emu", "emu experiments/emu-small.yaml --set emu.mutant=flip-byte", "one wrong byte on purpose: must fail"},
    {"emu", "emu bench --fabric verbs --device mlx5_0,mlx5_1",
     "what the fabric and the engine's paths do between two RDMA devices"},
    {"emu", "emu measure --fabric verbs --device mlx5_0,mlx5_1 -o wire",
     "wire/nic.json and wire/host.json: for --set network.nic and host"},
    {"replay", "replay out/smartgen", "the recorded events lead to the recorded actions again"},
    {"summarize", "summarize out/full out/smartgen", "two runs, line by line"},
    {"compare", "compare out/sim out/emu", "how far a simulation is from the run that it predicts"},
    {"compare", "compare out/simgrid out/native --tolerance 0.001", "for scripts: exit status 1 where they differ by more"},
    {"figures", "figures -j 4 -o out", "everything, four points at a time"},
    {"figures", "figures fig11 validation", "one figure and the table of the paper's numbers beside ours"},
    {"profile", "profile -o qwen.kvit", "an importance file of the default scenario's model"},
    {"profile", "profile --inspect qwen.kvit", "what is in it"},
    {"profile", "profile --merge a.kvit b.kvit -o both.kvit", "two files into one"},
    {"profile", "profile --record rec.kvsr --requests 2", "the selections themselves"},
    {"kernels", "kernels measure -o machine", "machine/gpu.json and machine/host.json: for --set decode.gpu and host"},
    {"kernels", "kernels measure --backend cuda --set selector=hata -o h100", "a GPU, with another selector"},
    {"kernels", "kernels quality", "how well each selector finds the entries that count, on synthetic tensors"},
    {"kernels", "kernels quality --heads 32 --kv-heads 8 --json", "other sizes, for scripts"},
    {"kernels", "kernels list", "what is computed, and on what"},
    {"list", "list models", "names that `model:` takes"},
    {"list", "list keys", "every scenario key with default and range"},
    {"doctor", "doctor", "what is missing here, and what to install for it"},
    {"doctor", "doctor --json", "the same for scripts"},
    {"completion", "completion bash > ~/.local/share/bash-completion/completions/smartgen", "where it is not installed"},
    {"help", "help sim", "the same as `smartgen sim --help`"},
};

const char *smg_example(const char *command, size_t i, const char **why_out)
{
    for (size_t k = 0; k < sizeof examples / sizeof examples[0]; k++) {
        if (strcmp(examples[k].command, command) || i--)
            continue;
        *why_out = examples[k].why;
        return examples[k].text;
    }
    return NULL;
}

/* ---- One command ---- */

/* "ID: fig02 fig03 ...", for an operand whose words are known. */
static void print_words(void *arg, const char *kind)
{
    const char *words[SMG_WORDS_MAX];
    size_t n = smg_words(kind, words);

    if (!n)
        return;
    fprintf(arg, "%s:", kind);
    for (size_t i = 0; i < n; i++)
        fprintf(arg, " %s", words[i]);
    fprintf(arg, "\n");
}

static void print_option(const struct smg_option *o, FILE *f)
{
    const char *words[SMG_WORDS_MAX];
    char left[64];
    size_t n = o->value ? smg_words(o->value, words) : 0;

    snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    fprintf(f, "  %c%c%s %-20s %s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? "," : " ", left, o->doc);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s %s", i ? "," : ":", words[i]);
    fprintf(f, "\n");
}

void smg_command_help(const struct smg_command *c, FILE *f)
{
    const char *heading = NULL, *text, *why;

    fprintf(f, "usage: smartgen %s [OPTION...]%s%s\n%s\n", c->name, c->usage[0] ? " " : "", c->usage, c->doc);
    smg_usage_words(c->usage, print_words, f);
    for (const struct smg_option *o = smg_options; o->name; o++) {
        if (!o->name[0])
            heading = o->doc;
        if (!smg_command_takes(c, o))
            continue;
        if (heading)
            fprintf(f, "\n%s\n", heading);
        heading = NULL;
        print_option(o, f);
    }
    for (size_t i = 0; (text = smg_example(c->name, i, &why)); i++)
        fprintf(f, "%s  # %s\n  smartgen %s\n", i ? "" : "\nExamples\n", why, text);
    if (strstr(c->usage, "SCENARIO"))
        fprintf(f, "\nWithout a SCENARIO the default holds; - is standard input. Its keys: `smartgen list keys`.\n");
}

/* ---- The program ---- */

void smg_help(FILE *f)
{
    fprintf(f,
            "smartgen %s: selective KV-cache transfer in prefill/decode-disaggregated LLM inference, simulated and for real\n\n"
            "usage: smartgen COMMAND [OPTION...] [OPERAND...]\n\n",
            PACKAGE_VERSION);
    for (const struct smg_command *c = smg_commands; c->name; c++)
        fprintf(f, "  %-10s %-18s %s\n", c->name, c->usage, c->doc);
    fprintf(f, "\n`smartgen COMMAND --help` tells more, with examples; `smartgen --version` what is built in.\n"
               "Scenario keys: `smartgen list keys`. Exit status: 0 done, 1 the run failed, 2 bad usage or input.\n");
}

int smg_cmd_help(const struct smg_args *a)
{
    const struct smg_command *c = a->n_operands ? smg_command_find(a->operand[0]) : NULL;

    if (a->n_operands && !c)
        return smg_command_unknown(a->operand[0]);
    if (c)
        smg_command_help(c, stdout);
    else
        smg_help(stdout);
    return SMG_EXIT_OK;
}
