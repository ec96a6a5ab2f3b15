/* smartgen kernels: the kernels around the KV cache, and how well selectors select on synthetic tensors. Measuring is in
 * kernels_measure.c. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cmd_kernels.h"
#include "kernels/smg_quality.h"
#include "traces/scenario.h"

/* ---- list ---- */

static int list(const struct smg_args *a)
{
    static const char *const kernels[][2] = {
#define NAME(name, text) {#name, text},
        SMG_KERNEL_MAP(NAME)
#undef NAME
    };

    (void)a;
    for (uint32_t i = 0; smg_kernels_list(i); i++) {
        struct smg_kernels *k;
        struct smg_diag diag = {""};
        int status = smg_kernels_open(smg_kernels_list(i), NULL, &k, &diag);
        printf("%-16s %s\n", smg_kernels_list(i), status ? diag.text : smg_kernels_where(k));
        if (!status)
            smg_kernels_close(k);
    }
    printf("\n");
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        printf("%-16s %s\n", kernels[i][0], kernels[i][1]);
    return SMG_EXIT_OK;
}

/* ---- quality ---- */

static const char *ranks_by(enum smg_quality_selector s)
{
    static const char *const texts[] = {
#define TEXT(id, name, text) text,
        SMG_QUALITY_MAP(TEXT)
#undef TEXT
    };

    return texts[s];
}

static void print_table(const char *title, const struct smg_quality_params *p, const struct smg_quality *q, int mass)
{
    printf("\n%-16s", title);
    for (uint32_t r = 0; r < p->ratios; r++)
        printf(" %5.0f%%", 100 * (double)p->ratio[r]);
    printf("\n");
    for (int s = 0; s < SMG_QUALITY_SELECTORS; s++) {
        printf("%-16s", smg_quality_name((enum smg_quality_selector)s));
        for (uint32_t r = 0; r < p->ratios; r++)
            printf(" %6.3f", mass ? q->at[s][r].mass : q->at[s][r].recall);
        printf("\n");
    }
}

static void print_text(const struct smg_kernels *k, const struct smg_quality_params *p, const struct smg_quality *q)
{
    printf("synthetic tensors, seed %llu: %u query heads, %u KV heads of %u elements; %u requests of %u tokens, %u steps each\n",
           (unsigned long long)p->planted.seed, p->planted.q_heads, p->planted.kv_heads, p->planted.head_dim, p->requests,
           p->tokens, p->steps);
    printf("kernels: %s; hash training by %s, loss %.1f -> %.1f\n", smg_kernels_where(k), smg_hata_library(), q->loss[0],
           q->loss[1]);
    printf("InfiniGen's threshold (alpha %g) alone would keep %.1f%% of the entries\n", (double)p->alpha, 100 * q->keep);
    print_table("recall", p, q, 0);
    print_table("softmax mass", p, q, 1);
    printf("\nrecall: share of the oracle's entries found, by share of the entries selected; mass: softmax weight held\n");
}

static json_t *selector_json(const struct smg_quality_params *p, const struct smg_quality *q, enum smg_quality_selector s)
{
    json_t *at = json_array();

    for (uint32_t r = 0; r < p->ratios; r++)
        json_array_append_new(at, json_pack("{s:f, s:f, s:f}", "ratio", (double)(int)(1000 * p->ratio[r] + 0.5f) / 1000, "recall",
                                            q->at[s][r].recall, "mass", q->at[s][r].mass));
    return json_pack("{s:s, s:s, s:o}", "name", smg_quality_name(s), "ranks_by", ranks_by(s), "at", at);
}

static int print_json(const struct smg_kernels *k, const struct smg_quality_params *p, const struct smg_quality *q)
{
    json_t *selectors = json_array(), *all;
    int failed;

    for (int s = 0; s < SMG_QUALITY_SELECTORS; s++)
        json_array_append_new(selectors, selector_json(p, q, (enum smg_quality_selector)s));
    all = json_pack("{s:b, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:[f,f], s:f, s:f, s:o}", "synthetic", 1, "seed",
                    (json_int_t)p->planted.seed, "heads", (int)p->planted.q_heads, "kv_heads", (int)p->planted.kv_heads,
                    "head_dim", (int)p->planted.head_dim, "tokens", (int)p->tokens, "requests", (int)p->requests, "steps",
                    (int)p->steps, "kernels", smg_kernels_where(k), "linear_algebra", smg_hata_library(), "hata_loss", q->loss[0],
                    q->loss[1], "alpha", (double)p->alpha, "threshold_keeps", q->keep, "selectors", selectors);
    failed = !all || json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(all);
    return failed ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

int smg_kernels_backend(const char *name, struct smg_kernels **k)
{
    const char *names[SMG_WORDS_MAX], *near;
    struct smg_diag diag = {""};
    int status = smg_kernels_open(name, NULL, k, &diag);

    if (status != SMG_ERR_NOT_FOUND)
        return status ? smg_cli_fail(status, &diag) : SMG_EXIT_OK;
    smg_words("BACKEND", names);
    near = smg_nearest(name, names);
    fprintf(stderr, "smartgen: --backend: %s%s%s%s\n", diag.text, near ? "; did you mean '" : "", near ? near : "",
            near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

/* A whole number from 1 (the seed: from 0) to the largest; NULL leaves *out as it is. */
static int count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    unsigned long long x;

    if (!text)
        return SMG_EXIT_OK;
    errno = 0;
    x = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || x < least || x > most) {
        fprintf(stderr, "smartgen kernels: --%s: expected a whole number in [%llu, %llu], found '%s'\n", option,
                (unsigned long long)least, (unsigned long long)most, text);
        return SMG_EXIT_USAGE;
    }
    *out = x;
    return SMG_EXIT_OK;
}

/* The planted tensors hide three pairs of rotated elements in a head. */
enum { HEAD_DIM_MIN = 6 };

static int read_sizes(const struct smg_args *a, struct smg_quality_params *p)
{
    uint64_t heads = 8, kv_heads = 2, head_dim = 128, tokens = 0, seed = 1;

    if (count("heads", a->heads, 1, 1024, &heads) || count("kv-heads", a->kv_heads, 1, 1024, &kv_heads) ||
        count("head-dim", a->head_dim, HEAD_DIM_MIN, 256, &head_dim) || count("tokens", a->tokens, 1, 1 << 20, &tokens) ||
        count("seed", a->seed, 0, (uint64_t)1 << 53, &seed))
        return SMG_EXIT_USAGE;
    if (heads % kv_heads || head_dim % 2) {
        fprintf(stderr, "smartgen kernels: --%s: expected %s, found '%llu'\n", head_dim % 2 ? "head-dim" : "heads",
                head_dim % 2 ? "an even number in [6, 256]" : "a multiple of --kv-heads",
                (unsigned long long)(head_dim % 2 ? head_dim : heads));
        return SMG_EXIT_USAGE;
    }
    smg_quality_defaults(p, seed, (uint32_t)heads, (uint32_t)kv_heads, (uint32_t)head_dim);
    p->tokens = tokens ? (uint32_t)tokens : p->tokens;
    return SMG_EXIT_OK;
}

static int quality(const struct smg_args *a)
{
    struct smg_quality_params p;
    struct smg_quality q;
    struct smg_diag diag = {""};
    struct smg_kernels *k;
    int code = read_sizes(a, &p), status;

    if (!code)
        code = smg_kernels_backend(a->backend ? a->backend : "cpu", &k);
    if (code)
        return code;
    status = smg_selector_quality(k, &p, &q, &diag);
    if (status)
        code = smg_cli_fail(status, &diag);
    else if (a->json)
        code = print_json(k, &p, &q);
    else
        print_text(k, &p, &q);
    smg_kernels_close(k);
    return code;
}

/* ---- The command ---- */

static const struct {
    const char *name;
    int (*run)(const struct smg_args *a); /* without its name */
    const char *options;                  /* what it takes of the command's */
    size_t max_operands;
} actions[] = {
    {"measure", smg_kernels_measure, " set output backend quick json progress quiet ", 1},
    {"quality", quality, " backend heads kv-heads head-dim tokens seed json ", 0},
    {"list", list, " ", 0},
};

const char *const *smg_kernels_actions(void)
{
    static const char *names[sizeof actions / sizeof actions[0] + 1];

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        names[i] = actions[i].name;
    return names;
}

/* The first option that was given and is not one of those (each with a blank on both sides); NULL: none. */
static const char *in_vain(const struct smg_args *a, const char *options)
{
    const struct {
        const char *option; /* with blanks */
        int given;
    } all[] = {{" set ", a->n_sets > 0}, {" output ", !!a->output},     {" backend ", !!a->backend},   {" quick ", a->quick},
               {" heads ", !!a->heads},  {" kv-heads ", !!a->kv_heads}, {" head-dim ", !!a->head_dim}, {" tokens ", !!a->tokens},
               {" seed ", !!a->seed},    {" json ", a->json},           {" progress ", a->progress},   {" quiet ", a->quiet}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].given && !strstr(options, all[i].option))
            return all[i].option;
    return NULL;
}

/* The command's table knows what some action takes; here it is this one. */
static int run(size_t i, const struct smg_args *a)
{
    const char *option = in_vain(a, actions[i].options);

    if (option)
        fprintf(stderr, "smartgen kernels: %s takes no --%.*s; `smartgen kernels --help` tells more\n", actions[i].name,
                (int)strlen(option) - 2, option + 1);
    else if (a->n_operands > actions[i].max_operands)
        fprintf(stderr, "smartgen kernels: unexpected operand '%s'; `smartgen kernels --help` tells more\n",
                a->operand[actions[i].max_operands]);
    else
        return actions[i].run(a);
    return SMG_EXIT_USAGE;
}

int smg_cmd_kernels(const struct smg_args *a)
{
    const char *near;
    struct smg_args rest = *a;

    rest.operand++;
    rest.n_operands--;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (!strcmp(a->operand[0], actions[i].name))
            return run(i, &rest);
    near = smg_nearest(a->operand[0], smg_kernels_actions());
    fprintf(stderr, "smartgen kernels: unknown action '%s'; %s%s%s\n", a->operand[0],
            near ? "did you mean '" : "`smartgen kernels --help` names them", near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}
