/* smartgen profile: importance files and recorded selections. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "traces/importance_facts.h"
#include "traces/importance_profile.h"
#include "traces/selection_recording.h"
#include "traces/world.h"

#define REQUESTS 4u
#define STEPS    24u

/* A profile with what its header says. */
struct profile {
    struct smg_importance *im;
    struct smg_importance_info info;
};

static int usage(const char *what)
{
    fprintf(stderr, "smartgen profile: %s; `smartgen profile --help` tells more\n", what);
    return SMG_EXIT_USAGE;
}

static int load(const char *path, struct profile *p)
{
    struct smg_diag diag = {""};
    int status = smg_importance_read(path, &p->im, &p->info, &diag);

    if (smg_interrupted()) { /* it may be why */
        smg_importance_destroy(p->im);
        p->im = NULL;
        return smg_cli_fail(SMG_ERR_INTERRUPTED, NULL);
    }
    return status ? smg_cli_fail(status, &diag) : 0;
}

/* The work was good, the disk was not. */
static int unwritten(int status, const struct smg_diag *diag)
{
    int code = smg_cli_fail(status, diag);

    return status == SMG_ERR_IO ? SMG_EXIT_FAILED : code;
}

static int store(const struct smg_args *a, const struct profile *p)
{
    struct smg_diag diag = {""};
    int status = smg_importance_write(a->output, p->im, &p->info, &diag);

    if (status)
        return unwritten(status, &diag);
    if (!a->quiet)
        printf("%s: %u groups of %u layers of %u blocks%s\n", a->output, p->im->groups, p->im->layers, p->im->blocks,
               p->im->synthetic ? ", synthetic" : "");
    return SMG_EXIT_OK;
}

/* ---- Making ---- */

/* The ranking of the scenario must not ask for a profile that is to be made. No warnings: of keys that mean nothing to a run some
 * mean something here (workload.dataset). */
static int load_world(const struct smg_args *a, struct smg_scenario *s, struct smg_world *w)
{
    int code = smg_cli_scenario(a, "proactive.ranking=sequential", s);

    return code ? code : smg_cli_resolve(s, w);
}

static int make(const struct smg_args *a)
{
    struct smg_profile_plan plan = {a->requests ? a->requests : REQUESTS, a->steps ? a->steps : STEPS, smg_progress_requests,
                                    NULL, smg_interrupted};
    struct smg_progress progress;
    struct smg_diag diag = {""};
    struct smg_scenario s;
    struct smg_world w;
    struct profile p;
    int status;

    if (!a->output)
        return usage("-o FILE is missing: where shall the importance matrix go?");
    smg_interrupt_watch();
    status = smg_output_check(a->output, &smg_output_importance);
    if (!status)
        status = load_world(a, &s, &w);
    if (status)
        return status;
    smg_progress_begin(&progress, a, "profile", "requests", 0);
    plan.context = &progress;
    status = smg_profile_make(&w, &plan, &p.im, &p.info, &diag);
    smg_progress_end(&progress);
    smg_world_free(&w);
    if (status)
        return smg_cli_fail(status, &diag);
    status = store(a, &p);
    smg_importance_destroy(p.im);
    return status;
}

static uint32_t longest_output(const struct smg_world *w)
{
    uint32_t i, n = 1;

    for (i = 0; i < w->n_requests; i++)
        n = w->requests[i].output_tokens > n ? w->requests[i].output_tokens : n;
    return n;
}

static int record(const struct smg_args *a)
{
    struct smg_diag diag = {""};
    struct smg_scenario s;
    struct smg_world w;
    uint32_t steps;
    int status;

    smg_interrupt_watch();
    status = smg_output_check(a->record, &smg_output_recording);
    if (!status)
        status = load_world(a, &s, &w);
    if (status)
        return status;
    steps = a->steps ? a->steps : longest_output(&w) > 1 ? longest_output(&w) - 1 : 1;
    status = smg_recording_write(a->record, &w, a->requests ? a->requests : w.n_requests, steps, smg_interrupted, &diag);
    if (!status && !a->quiet)
        printf("%s: %u decode steps of %u requests%s\n", a->record, steps, a->requests ? a->requests : w.n_requests,
               w.synthetic_selection ? ", synthetic" : "");
    smg_world_free(&w);
    return status ? unwritten(status, &diag) : SMG_EXIT_OK;
}

/* The same requests would count twice. */
static int is_copy(const struct profile *x, const struct profile *y)
{
    size_t n = (size_t)x->im->groups * x->im->layers * x->im->blocks;

    return x->info.seed == y->info.seed && x->im->groups == y->im->groups && x->im->layers == y->im->layers &&
           x->im->blocks == y->im->blocks && !memcmp(x->im->value, y->im->value, n * sizeof *x->im->value) &&
           !memcmp(x->im->requests, y->im->requests, x->im->groups * sizeof *x->im->requests);
}

static int merge(const struct smg_args *a)
{
    struct profile x = {0}, y = {0}, z = {0};
    struct smg_diag diag = {""};
    int status;

    if (a->n_operands != 2 || !a->output)
        return usage("--merge takes two files and -o FILE");
    smg_interrupt_watch();
    status = smg_output_check(a->output, &smg_output_importance);
    if (!status)
        status = load(a->operand[0], &x);
    if (!status)
        status = load(a->operand[1], &y);
    if (!status && is_copy(&x, &y)) {
        fprintf(stderr, "smartgen: %s: holds the requests of %s: they would count twice\n", a->operand[1], a->operand[0]);
        status = SMG_EXIT_USAGE;
    }
    if (!status) {
        int merged = smg_importance_merge(x.im, &x.info, y.im, &y.info, &z.im, &z.info, &diag);
        status = merged ? smg_cli_fail(merged, &diag) : store(a, &z);
    }
    smg_importance_destroy(z.im);
    smg_importance_destroy(y.im);
    smg_importance_destroy(x.im);
    return status;
}

/* ---- Looking ---- */

static void print_bound(uint32_t tokens)
{
    if (tokens == UINT32_MAX)
        printf("%10s", "inf");
    else
        printf("%10u", tokens);
}

static void print_group(const struct smg_importance *im, uint32_t g)
{
    double sum = 0, variance = 0, most = 0, n = 0;

    for (uint32_t l = 0; l < im->layers; l++)
        for (uint32_t b = 0; b < im->blocks; b++) {
            size_t at = ((size_t)g * im->layers + l) * im->blocks + b;
            if (!isfinite(im->value[at]))
                continue;
            sum += im->value[at];
            variance += im->variance[at];
            most = fmax(most, im->value[at]);
            n++;
        }
    printf("%10u", im->group_lo[g]);
    print_bound(im->group_hi[g]);
    printf("%10u%10u%12.4f%12.4f%14.5f\n", im->requests[g], im->steps[g], n > 0 ? sum / n : 0, most,
           n > 0 ? sqrt(variance / n) : 0);
}

static void print_overlap(const struct smg_importance *im)
{
    static const uint32_t steps[] = {2, 5, 10, 20, 40, 63};

    printf("\n%10s%12s%16s\n", "step", "overlap", "never before");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && steps[i] <= im->overlap_steps; i++) {
        double overlap = 0, fresh = 0;
        uint32_t n = 0;
        for (uint32_t l = 0; l < im->layers; l++) {
            size_t at = (size_t)l * im->overlap_steps + steps[i] - 1;
            if (im->newrate[at - steps[i] + 1] <= 0) /* a layer that does not select has no first step either */
                continue;
            overlap += im->overlap[at];
            fresh += im->newrate[at];
            n++;
        }
        printf("%10u%12.3f%16.3f\n", steps[i], n ? overlap / n : 0, n ? fresh / n : 0);
    }
}

static int inspect(const struct smg_args *a)
{
    struct profile p = {0};
    int status = load(a->operand[0], &p);

    if (status)
        return status;
    printf("%s: %s, selector %s, cap %g, seed %llu%s\n%u layers, %u KV heads of %u, %u blocks, %u data sets:", a->operand[0],
           p.info.model, p.info.selector, p.info.cap, (unsigned long long)p.info.seed,
           p.im->synthetic ? ", synthetic" : ", captured", p.im->layers, p.info.kv_heads, p.info.head_dim, p.im->blocks,
           p.im->datasets);
    for (uint32_t d = 0; d < p.im->datasets; d++)
        printf(" %s", p.info.dataset[d]);
    printf("\n\n%10s%10s%10s%10s%12s%12s%14s\n", "tokens >", "<=", "requests", "steps", "mean", "highest", "spread");
    for (uint32_t g = 0; g < p.im->groups; g++)
        print_group(p.im, g);
    if (p.im->overlap_steps)
        print_overlap(p.im);
    smg_importance_destroy(p.im);
    return SMG_EXIT_OK;
}

/* The model that a file was made for; one of the user's own has only its name in the file, so --set model=FILE says where it is.
 */
static int load_model(const struct smg_args *a, const struct profile *p, struct smg_model *m)
{
    static const char key[] = "model=";
    const char *model = p->info.model;
    struct smg_diag diag = {""}, found = {""};
    int status;

    for (size_t i = 0; i < a->n_sets; i++) {
        if (strncmp(a->sets[i], key, strlen(key)))
            return usage("of --set, --check takes model=FILE");
        model = a->sets[i] + strlen(key);
    }
    status = smg_model_load(model, m, &found);
    if (!status)
        status = smg_importance_fits(a->operand[0], p->im, &p->info, m, &diag);
    else if (!a->n_sets)
        snprintf(diag.text, sizeof diag.text, "%.200s: %.200s; a model of your own is named by --set model=FILE", a->operand[0],
                 found.text);
    else
        diag = found;
    return status ? smg_cli_fail(status, &diag) : SMG_EXIT_OK;
}

/* What the generator that made the file shows by itself; none for a captured one. */
static int measure(const struct profile *p, const struct smg_model *m, struct smg_generator_facts *out, int *known)
{
    struct smg_diag diag = {""};
    struct smg_generator *g;
    int status;

    *known = p->im->synthetic;
    if (!*known)
        return 0;
    status = smg_generator_create(m, p->info.seed, 0, &g, &diag);
    if (!status) {
        status = smg_generator_facts_measure(g, p->info.cap, 7000, out);
        smg_generator_destroy(g);
    }
    return status ? smg_cli_fail(status, &diag) : 0;
}

static int print_facts(const struct smg_fact *fact)
{
    static const char *const word[] = {"pass", "FAIL", "-"};
    int failed = 0;

    for (unsigned i = 0; i < SMG_FACTS; i++) {
        printf("%-4s %-5s %s\n           %s\n", fact[i].id, word[fact[i].verdict], fact[i].claim, fact[i].measured);
        failed += fact[i].verdict == SMG_FACT_FAIL;
    }
    return failed ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

static int check(const struct smg_args *a)
{
    struct profile p = {0};
    struct smg_generator_facts facts;
    struct smg_fact fact[SMG_FACTS];
    struct smg_model m;
    int known = 0, status = load(a->operand[0], &p), found;

    if (status)
        return status;
    status = load_model(a, &p, &m);
    if (!status)
        status = measure(&p, &m, &facts, &known);
    if (!status) {
        found = smg_importance_facts(p.im, &p.info, &m, known ? &facts : NULL, fact);
        status = found ? smg_cli_fail(found, NULL) : print_facts(fact);
        if (!found && p.im->synthetic)
            printf("synthetic: importance\n");
    }
    smg_importance_destroy(p.im);
    return status;
}

/* ---- Heat map: frequency by layer and relative position ---- */

enum { POSITIONS = 100 };

static void write_heatmap(const void *what, FILE *f)
{
    const struct profile *p = what;
    float row[POSITIONS];
    size_t matrix = (size_t)p->im->layers * p->im->blocks;

    fputs(SMG_HEATMAP_HEADER, f);
    for (uint32_t g = 0; g < p->im->groups; g++)
        for (uint32_t d = 0; d < p->im->datasets; d++)
            for (uint32_t l = SMG_DENSE_LAYERS; l < p->im->layers; l++) {
                struct smg_importance one = {.groups = 1, .layers = p->im->layers, .blocks = p->im->blocks};
                one.value = p->im->dataset_value + ((size_t)g * p->im->datasets + d) * matrix;
                smg_importance_resample(&one, 0, l, POSITIONS, row);
                for (int i = 0; i < POSITIONS; i++)
                    fprintf(f, "%s,%s,%u,%u,%u,%.9g,%.9g,%s\n", p->info.model, p->info.dataset[d], p->im->group_lo[g],
                            p->im->group_hi[g], l, (i + 0.5) / POSITIONS, (double)row[i],
                            p->im->synthetic ? "synthetic" : "captured");
            }
}

static int heatmap(const struct smg_args *a)
{
    struct profile p = {0};
    int code = SMG_EXIT_OK;

    if (a->output) {
        smg_interrupt_watch();
        code = smg_output_check(a->output, &smg_output_heatmap);
    }
    if (!code)
        code = load(a->operand[0], &p);
    if (code)
        return code;
    if (!a->output) {
        write_heatmap(&p, stdout); /* how it went, the end of the program tells */
    } else {
        code = smg_output_write(a->output, write_heatmap, &p);
        if (!code && !a->quiet)
            printf("%s: %u groups and %u data sets of %u layers, %u positions each\n", a->output, p.im->groups, p.im->datasets,
                   p.im->layers - SMG_DENSE_LAYERS, POSITIONS);
    }
    smg_importance_destroy(p.im);
    return code;
}

int smg_cmd_profile(const struct smg_args *a)
{
    int actions = a->merge + a->inspect + a->check + a->heatmap + (a->record != NULL);

    if (actions > 1)
        return usage("one of --merge, --inspect, --check, --heatmap, --record at a time");
    if (a->merge)
        return merge(a);
    if ((a->inspect || a->check || a->heatmap) && a->n_operands != 1)
        return usage("expected one file");
    if (a->n_operands > 1)
        return usage("expected one scenario");
    if (a->inspect)
        return inspect(a);
    if (a->check)
        return check(a);
    if (a->heatmap)
        return heatmap(a);
    return a->record ? record(a) : make(a);
}
