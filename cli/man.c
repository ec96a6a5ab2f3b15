/* smartgen man: the manual page as roff, from the tables of commands, options and scenario keys. The build calls it. */
#include "config.h"

#include <string.h>

#include "cli/cli.h"
#include "traces/scenario_keys.h"

/* ---- roff ---- */

/* Text as it stands: what roff would take for something else is escaped. */
static void text(const char *s)
{
    static const char *const escape[][2] = {{"\\", "\\e"},  {"-", "\\-"},   {"'", "\\(aq"},
                                            {"`", "\\(ga"}, {"^", "\\(ha"}, {"~", "\\(ti"}};

    for (; *s; s++) {
        size_t i = 0, n = sizeof escape / sizeof escape[0];
        while (i < n && escape[i][0][0] != *s)
            i++;
        if (i < n)
            fputs(escape[i][1], stdout);
        else
            putchar(*s);
    }
}

/* A line of text: one that begins with a dot or an apostrophe is not a request. */
static void line(const char *s)
{
    printf("\\&");
    text(s);
    printf("\n");
}

static void bold(const char *s)
{
    printf("\\fB");
    text(s);
    printf("\\fR");
}

static void italic(const char *s)
{
    printf("\\fI");
    text(s);
    printf("\\fR");
}

static void section(const char *name)
{
    printf(".SH \"%s\"\n", name);
}

/* A tag with its paragraph. */
static void tagged(const char *tag, const char *body)
{
    printf(".TP\n");
    bold(tag);
    printf("\n");
    line(body);
}

static void words(const char *before, const char *kind)
{
    const char *word[SMG_WORDS_MAX];
    size_t n = smg_words(kind, word);

    for (size_t i = 0; i < n; i++) {
        printf("%s", i ? ", " : before);
        text(word[i]);
    }
    if (n)
        printf(".\n");
}

/* ---- Sections ---- */

static void operand_words(void *arg, const char *kind)
{
    char before[48];

    (void)arg;
    snprintf(before, sizeof before, "\\fI%s\\fR: ", kind);
    words(before, kind);
}

static void command(const struct smg_command *c)
{
    printf(".SS \"%s\"\n", c->name);
    bold("smartgen");
    printf(" ");
    bold(c->name);
    printf(" [\\fIOPTION\\fR...] ");
    italic(c->usage);
    printf("\n.PP\n");
    line(c->doc);
    printf(".br\n");
    smg_usage_words(c->usage, operand_words, NULL);
    printf("Options:");
    for (const struct smg_option *o = smg_options; o->name; o++) {
        if (!smg_command_takes(c, o))
            continue;
        printf(" \\fB\\-\\-");
        text(o->name);
        printf("\\fR");
    }
    printf(".\n");
}

static void option(const struct smg_option *o)
{
    printf(".TP\n");
    if (o->letter)
        printf("\\fB\\-%c\\fR, ", o->letter);
    printf("\\fB\\-\\-");
    text(o->name);
    printf("\\fR");
    if (o->value) {
        printf(" ");
        italic(o->value);
    }
    printf("\n");
    line(o->doc);
    if (o->value)
        words("One of ", o->value);
}

static void options(void)
{
    section("OPTIONS");
    line("Each command takes those that it lists.");
    for (const struct smg_option *o = smg_options; o->name; o++) {
        if (!o->name[0])
            printf(".SS \"%s\"\n", o->doc);
        else
            option(o);
    }
}

static void key(const struct smg_key *k)
{
    char expected[160];
    int path;
    const char *names = smg_key_names(k, &path);

    printf(".TP\n");
    bold(k->path);
    printf(" (default ");
    text(k->preset[0] ? k->preset : "none");
    printf("%s", k->unit[0] ? " " : "");
    text(k->unit);
    printf(")\n");
    line(k->doc);
    if (names) {
        printf("Names: \\fBsmartgen list %s\\fR.\n", names);
    } else if (k->kind != SMG_KEY_TEXT || k->names) {
        smg_key_expected(k, expected, sizeof expected);
        printf("Takes ");
        text(expected);
        printf(".\n");
    }
}

static void keys(void)
{
    size_t n;
    const struct smg_key *k = smg_keys(&n);

    section("SCENARIO");
    line("A scenario is a YAML file that names only what differs from the default; each key also works as --set KEY=VALUE. A dot "
         "stands for nesting. Unknown keys are errors. - as SCENARIO is standard input. Paths are looked up beside the scenario "
         "file first.");
    for (size_t i = 0; i < n; i++)
        key(&k[i]);
}

static void environment(void)
{
    section("ENVIRONMENT");
    tagged("SMARTGEN_DATA", "Folder of models, GPUs, NICs, hosts and workloads, in place of the installed one.");
    tagged("SMARTGEN_TOKEN",
           "Secret that the processes of a run over several hosts share (emu --role), where --token-file names none.");
    tagged("SMARTGEN_EXPERIMENTS", "Folder of the sweep files that smartgen figures reads, in place of the installed one.");
    tagged("SMARTGEN_PLOTS", "Folder of the gnuplot scripts and of the report's template, in place of the installed one.");
}

static void files(void)
{
    section("FILES");
    tagged(PKGDATADIR, "data, plots and experiments as installed.");
    tagged("DIR/run.json", "what a run depended on; a record folder that has it is complete.");
    tagged("DIR/requests.csv, tokens.csv, summary.json", "what came of it; times in s, sizes in bytes.");
    tagged("DIR/events.bin, actions.bin", "logs for smartgen replay.");
    tagged("DIR/decisions.csv, timeline.json", "with records.decisions, records.timeline.");
}

static void examples(void)
{
    const char *typed, *why;

    section("EXAMPLES");
    for (const struct smg_command *c = smg_commands; c->name; c++)
        for (size_t i = 0; (typed = smg_example(c->name, i, &why)); i++) {
            printf(".TP\n\\fBsmartgen ");
            text(typed);
            printf("\\fR\n");
            line(why);
        }
}

static void status(void)
{
    section("EXIT STATUS");
    tagged("0", "Done.");
    tagged("1",
           "The run failed: deadlock, a failed request, a broken conservation law, a failed verification, an interrupt. What "
           "records there are have been written.");
    tagged("2", "Bad usage or input: one line says where, what, and what is near.");
}

int smg_cmd_man(const struct smg_args *a)
{
    (void)a;
    printf(".\\\" Made by `smartgen man`: change the program's tables instead.\n");
    printf(".TH SMARTGEN 1 \"\" \"smartgen %s\" \"User Commands\"\n.nh\n.ad l\n", PACKAGE_VERSION);
    section("NAME");
    printf("smartgen \\- selective KV\\-cache transfer in disaggregated LLM inference, simulated and for real\n");
    section("SYNOPSIS");
    printf("\\fBsmartgen\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n.br\n\\fBsmartgen\\fR "
           "\\fB\\-\\-version\\fR\n");
    section("DESCRIPTION");
    line("Between the prefill and the decode machines of a disaggregated LLM service the KV cache of every prompt must move. "
         "smartgen studies moving the important part early and the rest on demand or in the background: it predicts (plan), "
         "simulates (sim) and really moves bytes (emu), all driven by the same agents. Long work shows its progress where "
         "standard "
         "error is a terminal. Ctrl-C ends a run between two events and leaves nothing half-written; finished figures stay.");
    section("COMMANDS");
    for (const struct smg_command *c = smg_commands; c->name; c++)
        command(c);
    options();
    keys();
    status();
    environment();
    files();
    examples();
    return SMG_EXIT_OK;
}
