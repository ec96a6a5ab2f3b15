/* One table of options for all commands: it parses, and help, man page and completion are made from it. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/importance_profile.h"
#include "traces/scenario.h"

const struct smg_option smg_options[] = {
    {"", 0, NULL, "Input"},
    {"set", 's', "KEY=VALUE", "set a scenario key, after the file; may be repeated"},
    {"", 0, NULL, "Run"},
    {"engine", 0, "ENGINE", "simulation engine (default: the scenario's; figures: simgrid where it is built in)"},
    {"role", 0, "ROLE",
     "what runs here: all (default), one process of a run over several hosts (router, prefill, decode), or auto: what mpirun or "
     "srun "
     "say"},
    {"router", 0, "HOST:PORT", "with such a role: where the router is; the router itself listens there (also :PORT)"},
    {"instance", 0, "N", "which of the instances (plan lists them) prefill or decode is; may be left out where there is one"},
    {"token-file", 0, "FILE", "with such a role: file of the run's secret (default: the environment's SMARTGEN_TOKEN)"},
    {"fabric", 0, "FABRIC", "transfer fabric (default ofi)"},
    {"device", 0, "NAME[,NAME]",
     "device or provider of the fabric (default of ofi: tcp, also PROVIDER@ADDRESS; of verbs: the first active one, also "
     "NAME:PORT:GID_INDEX); two: prefill instances use the first, decode instances the second"},
    {"timeout", 0, "SECONDS", "give up when nothing happens for so long (default 30)"},
    {"jobs", 'j', "N", "points simulated at the same time (default 1)"},
    {"requests", 0, "N",
     "profile: calibration requests of each length group (default 4, at most 4096); --record: requests (default all)"},
    {"steps", 0, "N", "profile: decode steps of each (default 24); --record: the longest output"},
    {"backend", 0, "BACKEND", "what kernels run on (default cpu)"},
    {"quick", 0, NULL, "kernels measure: small sizes and few repetitions, for rough values"},
    {"heads", 0, "N", "kernels quality: query heads (default 8)"},
    {"kv-heads", 0, "N", "kernels quality: KV heads (default 2)"},
    {"head-dim", 0, "N", "kernels quality: elements of a head, even, 6 to 256 (default 128)"},
    {"tokens", 0, "N", "kernels quality: tokens of a prompt (default 2048)"},
    {"seed", 0, "N", "kernels quality: seed of the synthetic tensors and of the training (default 1)"},
    {"tolerance", 0, "PERCENT", "compare: exit status 1 when an error is larger"},
    {"", 0, NULL, "Only with bench; block, entry-bytes, samples and seconds also with measure"},
    {"block", 0, "BYTES,...", "sizes of WRITEs (default 4K,64K,1M); measure: of a KV block and of a chunk (default 8K,128K)"},
    {"batch", 0, "N,...", "WRITEs of one chain (default 1,8)"},
    {"queues", 0, "N,...", "queue pairs, 1 to 3 (default 1,3)"},
    {"entries", 0, "N,...", "entries of an on-demand request (default 1,16,128,1024)"},
    {"entry-bytes", 0, "N", "size of an entry (default 512)"},
    {"depth", 0, "N", "WRITEs in flight on each queue pair (default 16)"},
    {"places", 0, "N", "places that blocks are written to in turn (default: as many as are in flight)"},
    {"memory", 0, "MEMORY", "where blocks lie (default host); on a GPU the device must take dma-bufs (GPUDirect RDMA)"},
    {"samples", 0, "N", "measurements of each percentile (default 500; measure: of each median, 20)"},
    {"seconds", 0, "SECONDS", "length of each stream (default 0.5)"},
    {"", 0, NULL, "Instead of making an importance file"},
    {"record", 0, "FILE", "write the selections themselves, for selection.file"},
    {"merge", 0, NULL, "two importance files into one, -o FILE"},
    {"inspect", 0, NULL, "groups and temporal statistics of an importance file"},
    {"check", 0, NULL,
     "facts that published heat maps and numbers ask of an importance file, measured; --set model=FILE names one's own model"},
    {"heatmap", 0, NULL, "CSV of frequency by layer and position, -o FILE"},
    {"", 0, NULL, "Output"},
    {"output", 'o', "DIR",
     "what to write: a record folder (default none); figures: their folder (default out); profile, compare: a file; kernels, emu "
     "measure: a folder"},
    {"timeline", 0, NULL, "write timeline.json (Chrome trace)"},
    {"json", 0, NULL, "machine-readable output"},
    {"progress", 0, NULL, "show progress also where standard error is no terminal, line by line (default: only on a terminal)"},
    {"quiet", 'q', NULL, "print nothing but errors"},
    {"help", 'h', NULL, "this text"},
    {NULL, 0, NULL, NULL}};

int smg_command_takes(const struct smg_command *c, const struct smg_option *o)
{
    size_t n = strlen(o->name);
    const char *at = c->options;

    if (!n)
        return 0;
    if (!strcmp(o->name, "help"))
        return 1;
    while ((at = strstr(at, o->name))) {
        if ((at == c->options || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
        at += n;
    }
    return 0;
}

/* ---- Parsing ---- */

static int bad(const struct smg_command *c, const char *what, const char *word)
{
    fprintf(stderr, "smartgen %s: %s '%s'; `smartgen %s --help` tells more\n", c->name, what, word, c->name);
    return SMG_ERR_INVALID;
}

static int bad_option(const struct smg_command *c, const char *word)
{
    const char *names[SMG_WORDS_MAX] = {NULL}, *near;
    char bare[64]; /* without dashes and value */
    size_t n = 0;

    for (const struct smg_option *o = smg_options; o->name && n + 1 < SMG_WORDS_MAX; o++)
        if (smg_command_takes(c, o))
            names[n++] = o->name;
    snprintf(bare, sizeof bare, "%s", word + strspn(word, "-"));
    bare[strcspn(bare, "=")] = '\0';
    near = smg_nearest(bare, names);
    if (!near)
        return bad(c, "unknown option", word);
    fprintf(stderr, "smartgen %s: unknown option '%s'; did you mean '--%s'?\n", c->name, word, near);
    return SMG_ERR_INVALID;
}

/* Finds --name, --name=value or -x; *value is the part after '=' or NULL. */
static const struct smg_option *find(const struct smg_command *c, const char *word, const char **value)
{
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);

    *value = NULL;
    for (const struct smg_option *o = smg_options; o->name; o++) {
        if (!smg_command_takes(c, o))
            continue;
        if (word[1] != '-' && word[1] == o->letter && o->letter && (!word[2] || o->value)) {
            *value = word[2] ? word + 2 : NULL; /* -j2 */
            return o;
        }
        if (word[1] == '-' && n - 2 == strlen(o->name) && !strncmp(word + 2, o->name, n - 2)) {
            *value = equals ? equals + 1 : NULL;
            return o;
        }
    }
    return NULL;
}

static int number(const struct smg_command *c, const struct smg_option *o, const char *text, int whole, double low, double high,
                  double *out)
{
    char *end;

    errno = 0;
    *out = strtod(text, &end);
    if (end == text || *end || errno || !(*out >= low && *out <= high) || (whole && *out != floor(*out))) {
        fprintf(stderr, "smartgen %s: --%s: expected a %snumber in [%g, %g], found '%s'\n", c->name, o->name,
                whole ? "whole " : "", low, high, text);
        return SMG_ERR_INVALID;
    }
    return SMG_OK;
}

/* Whether an option is a whole number from 1 on; then where it goes, and the largest. */
static int count(const struct smg_option *o, struct smg_args *a, uint32_t **to, double *high)
{
    const struct {
        const char *name;
        uint32_t *to;
        double high;
    } counts[] = {{"steps", &a->steps, 100000}, {"entry-bytes", &a->entry_bytes, 65536}, {"depth", &a->depth, 1024},
                  {"places", &a->places, 1024}, {"samples", &a->samples, 65536},         {"instance", &a->instance, 65535}};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (strcmp(o->name, counts[i].name))
            continue;
        *to = counts[i].to;
        *high = counts[i].high;
        return 1;
    }
    return 0;
}

static int set(const struct smg_command *c, const struct smg_option *o, const char *value, struct smg_args *a, int *help)
{
    double x, high;
    uint32_t *to;
    int status = SMG_OK;

    if (!strcmp(o->name, "set")) {
        if (a->n_sets == sizeof a->sets / sizeof a->sets[0])
            return bad(c, "too many --set, at", value);
        a->sets[a->n_sets++] = value;
    } else if (!strcmp(o->name, "jobs")) {
        status = number(c, o, value, 1, 1, 1024, &x);
        a->jobs = status ? 1 : (unsigned long)x;
    } else if (count(o, a, &to, &high)) {
        status = number(c, o, value, 1, 1, high, &x);
        *to = status ? 0 : (uint32_t)x;
    } else if (!strcmp(o->name, "seconds")) {
        status = number(c, o, value, 0, 0.001, 600, &a->seconds);
    } else if (!strcmp(o->name, "tolerance")) {
        status = number(c, o, value, 0, 0, 1e9, &a->tolerance);
    } else if (!strcmp(o->name, "timeout")) {
        status = number(c, o, value, 0, 0.1, 86400, &a->timeout_s);
    } else {
        const struct {
            const char *name;
            const char **text;
            int *flag;
        } plain[] = {{"output", &a->output, NULL},
                     {"engine", &a->engine, NULL},
                     {"role", &a->role, NULL},
                     {"fabric", &a->fabric, NULL},
                     {"router", &a->router, NULL},
                     {"token-file", &a->token_file, NULL},
                     {"device", &a->device, NULL},
                     {"timeline", NULL, &a->timeline},
                     {"record", &a->record, NULL},
                     {"merge", NULL, &a->merge},
                     {"inspect", NULL, &a->inspect},
                     {"quick", NULL, &a->quick},
                     {"check", NULL, &a->check},
                     {"heatmap", NULL, &a->heatmap},
                     {"block", &a->block, NULL},
                     {"batch", &a->batch, NULL},
                     {"queues", &a->queues, NULL},
                     {"memory", &a->memory, NULL},
                     {"entries", &a->entries, NULL},
                     {"json", NULL, &a->json},
                     {"quiet", NULL, &a->quiet},
                     {"progress", NULL, &a->progress},
                     {"backend", &a->backend, NULL},
                     {"heads", &a->heads, NULL},
                     {"kv-heads", &a->kv_heads, NULL},
                     {"head-dim", &a->head_dim, NULL},
                     {"tokens", &a->tokens, NULL},
                     {"seed", &a->seed, NULL},
                     {"help", NULL, help},
                     {"requests", &a->requests_given, NULL}};
        for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
            if (strcmp(o->name, plain[i].name))
                continue;
            if (plain[i].text)
                *plain[i].text = value;
            else
                *plain[i].flag = 1;
        }
    }
    return status;
}

/* How many there may be depends on what they are for, which may be said after them. */
static int set_requests(const struct smg_command *c, struct smg_args *a)
{
    static const struct smg_option o = {.name = "requests"};
    double x = 0;
    int status = SMG_OK;

    if (a->requests_given)
        status = number(c, &o, a->requests_given, 1, 1, a->record ? 100000 : SMG_PROFILE_REQUESTS_MAX, &x);
    a->requests = status ? 0 : (uint32_t)x;
    return status;
}

static int check_operands(const struct smg_command *c, const struct smg_args *a)
{
    if (a->n_operands < c->min_operands)
        return bad(c, "missing operand:", c->usage);
    if (a->n_operands > c->max_operands)
        return bad(c, "unexpected operand", a->operand[c->max_operands]);
    return SMG_OK;
}

int smg_args_parse(const struct smg_command *c, int argc, char **argv, struct smg_args *out, int *help)
{
    size_t n = 0;
    int plain = 0, status = SMG_OK;

    memset(out, 0, sizeof *out);
    out->jobs = 1;
    out->timeout_s = 30;
    out->tolerance = -1;
    for (int i = 0; i < argc && !status; i++) {
        const struct smg_option *o;
        const char *value;
        if (plain || argv[i][0] != '-' || !argv[i][1]) {
            argv[n++] = argv[i]; /* operands move to the front */
            continue;
        }
        if (!strcmp(argv[i], "--")) {
            plain = 1;
            continue;
        }
        o = find(c, argv[i], &value);
        if (!o)
            return bad_option(c, argv[i]);
        if (!o->value && value)
            return bad(c, "this option takes no value:", argv[i]);
        if (o->value && !value && ++i == argc)
            return bad(c, "value missing after", argv[i - 1]);
        status = set(c, o, o->value && !value ? argv[i] : value, out, help);
    }
    status = status ? status : set_requests(c, out);
    out->operand = (const char *const *)argv;
    out->n_operands = n;
    return status || *help ? status : check_operands(c, out);
}
