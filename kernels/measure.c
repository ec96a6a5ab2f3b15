/* Runs the measurements: results are held against the reference, then timed, then fitted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "kernels/measure_priv.h"
#include "kernels/threads.h"

enum { ATTEMPTS = 3 };

const char *smg_measured_name(enum smg_measured what)
{
    static const char *const name[] = {"select", "split", "attention", "unpack", "gather"};

    return name[what];
}

/* What one run of smg_measure_run carries about. */
struct run {
    const struct smg_world *world;
    const struct smg_measure_plan *plan;
    struct smg_kernels *reference;
    size_t pool_bytes;
    struct smg_measurement *out;
    struct smg_diag *diag;
};

/* Says what went wrong, unless it is said already. */
static int fail(const struct run *r, const struct smg_kernels *k, const char *kernel, int status)
{
    if (!status || !r->diag || r->diag->text[0])
        return status;
    if (status == SMG_ERR_NOMEM || status == SMG_ERR_INTERRUPTED)
        snprintf(r->diag->text, sizeof r->diag->text, "%s on %s: %s", kernel, smg_kernels_where(k), smg_status_string(status));
    else
        snprintf(r->diag->text, sizeof r->diag->text, "%s on %s: %.300s", kernel, smg_kernels_where(k), smg_kernels_diag(k));
    return status;
}

/* ---- Results against the reference ---- */

static int same(const struct smg_bench_case *c, const void *got, const void *expected)
{
    size_t n = c->result_bytes / (c->tolerance > 0 ? smg_dtype_bytes(c->result_type) : 1);

    if (c->tolerance <= 0)
        return !memcmp(got, expected, n);
    for (size_t i = 0; i < n; i++) {
        double g = smg_load(got, i, c->result_type), e = smg_load(expected, i, c->result_type);
        if (g != e && !(fabs(g - e) <= c->tolerance * (1 + fabs(e))))
            return 0;
    }
    return 1;
}

/* What one call on copy 0 gives, in memory of the host; free it. */
static int result_of(struct smg_kernels *k, const struct smg_bench_case *c, void **out)
{
    void *x = malloc(c->result_bytes);
    int status = x ? c->run(k, c, 0) : SMG_ERR_NOMEM;

    if (!status)
        status = smg_memory_copy(k, x, c->result, c->result_bytes, NULL);
    if (!status)
        status = smg_stream_sync(k, NULL);
    if (status) {
        free(x);
        return status;
    }
    *out = x;
    return SMG_OK;
}

/* The smallest case, c, once more on the reference. */
static int verify(const struct run *r, const struct smg_bench_subject *subject, struct smg_kernels *k,
                  const struct smg_bench_case *c)
{
    struct smg_bench b = {.k = r->reference, .world = r->world, .quick = r->plan->quick};
    struct smg_bench_case reference = {.run = NULL};
    void *expected = NULL, *got = NULL;
    int status = subject->prepare(&b, 0, &reference);

    if (!status)
        status = result_of(r->reference, &reference, &expected);
    if (status)
        fail(r, r->reference, subject->kernel(r->world), status);
    else
        status = result_of(k, c, &got);
    if (!status && !same(c, got, expected)) {
        status = SMG_ERR_VERIFY;
        snprintf(r->diag->text, sizeof r->diag->text, "%s on %s: the result is not that of the reference",
                 subject->kernel(r->world), smg_kernels_where(k));
    }
    free(expected);
    free(got);
    smg_bench_clear(&b);
    return status;
}

/* ---- One series ---- */

static int fit(const struct smg_bench_subject *subject, struct smg_measure_series *s, struct smg_diag *diag)
{
    double x[SMG_MEASURE_POINTS], y[SMG_MEASURE_POINTS], error[SMG_MEASURE_POINTS];
    struct smg_diag found = {""};
    int status;

    for (size_t i = 0; i < s->n; i++) {
        x[i] = s->point[i].bytes;
        y[i] = s->point[i].seconds;
        error[i] = s->point[i].error_s;
    }
    status = (subject->origin ? smg_fit_origin : smg_fit_line)(x, y, error, s->n, &s->fit, &found);
    if (status)
        snprintf(diag->text, sizeof diag->text, "%s: %.300s; the machine should do nothing else meanwhile",
                 smg_measured_name(subject->what), found.text);
    else
        diag->text[0] = '\0'; /* of an earlier attempt */
    return status;
}

static int measure(const struct run *r, const struct smg_bench_subject *subject, struct smg_kernels *k,
                   struct smg_measure_series *s)
{
    struct smg_bench b = {.k = k, .world = r->world, .quick = r->plan->quick, .pool_bytes = r->pool_bytes};
    struct smg_bench_effort effort = {r->plan->quick, 1, r->plan->stop};
    struct smg_bench_case c[SMG_MEASURE_POINTS];
    int status = SMG_OK;

    memset(c, 0, sizeof c);
    s->n = subject->sizes(&b);
    for (size_t i = s->n; i-- && !status;)
        status = subject->prepare(&b, (uint32_t)i, &c[i]);
    if (!status && k != r->reference)
        status = verify(r, subject, k, &c[0]);
    for (int attempt = 1; attempt <= ATTEMPTS && !status; attempt++) {
        effort.times = (uint32_t)attempt;
        status = smg_bench_time(k, c, s->n, &effort);
        for (size_t i = 0; i < s->n && !status; i++)
            s->point[i] = c[i].point;
        if (status || !(status = fit(subject, s, r->diag)) || attempt == ATTEMPTS || status != SMG_ERR_RANGE)
            break;
        status = SMG_OK; /* once more, for longer */
    }
    fail(r, k, s->kernel, status);
    smg_bench_clear(&b);
    return status;
}

static int add(const struct run *r, const struct smg_bench_subject *subject, struct smg_kernels *k, uint32_t threads, uint32_t of)
{
    struct smg_measurement *m = r->out;
    struct smg_measure_series *s = &m->series[m->n];
    int status = SMG_OK;

    *s = (struct smg_measure_series){.what = subject->what, .kernel = subject->kernel(r->world), .threads = threads};
    s->skipped = subject->skip ? subject->skip(r->world) : NULL;
    if (!s->skipped)
        status = measure(r, subject, k, s);
    if (status)
        return status;
    m->n++;
    if (r->plan->progress)
        r->plan->progress(r->plan->arg, (uint32_t)m->n, of);
    return SMG_OK;
}

/* ---- All of it ---- */

/* Threads to gather with: 1, 2, 4, ... and as many as there are. Returns how many numbers. */
static uint32_t thread_counts(uint32_t all, uint32_t out[8])
{
    uint32_t n = 0;

    for (uint32_t t = 1; t < all && n < 7; t *= 2)
        out[n++] = t;
    out[n++] = all;
    return n;
}

/* The rate of each number of threads. */
static int fit_gather(const struct run *r)
{
    struct smg_measurement *m = r->out;
    double threads[SMG_MEASURE_SERIES], rate[SMG_MEASURE_SERIES];
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct smg_measure_series *s = &m->series[i];
        if (s->what != SMG_MEASURE_GATHER)
            continue;
        threads[n] = s->threads;
        rate[n++] = 1 / s->fit.slope;
    }
    m->gather = (struct smg_power_fit){.points = 0, .factor = rate[0], .exponent = 1};
    return n > 1 ? smg_fit_power(threads, rate, n, &m->gather, r->diag) : SMG_OK;
}

/* The reference has one thread. */
static int gather_all(const struct run *r, const char *backend, uint32_t all, uint32_t gpu_series)
{
    uint32_t count[8], n = strcmp(backend, "reference") ? thread_counts(all, count) : 0;
    int status = SMG_OK;

    if (!n) {
        memcpy(r->out->host_where, r->out->where, sizeof r->out->where);
        status = add(r, &smg_bench_gather, r->reference, 1, gpu_series + 1);
    }
    for (uint32_t i = 0; i < n && !status; i++) {
        struct smg_kernels_options options = {.threads = count[i]};
        struct smg_kernels *k;
        status = smg_kernels_open("cpu", &options, &k, r->diag);
        if (status)
            break;
        snprintf(r->out->host_where, sizeof r->out->host_where, "%s", smg_kernels_where(k));
        status = add(r, &smg_bench_gather, k, count[i], gpu_series + n);
        smg_kernels_close(k);
    }
    return status ? status : fit_gather(r);
}

/* Twice the last cache, so that copies used in turn come from memory. */
static size_t pool_bytes(int quick)
{
    long cache = -1;

    if (quick)
        return (size_t)32 << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return (size_t)fmin(1 << 30, fmax(256 << 20, 2.0 * (double)cache));
}

/* As many threads as the process may use. */
static int count_threads(struct smg_diag *diag, uint32_t *out)
{
    struct smg_kernels *cpu;
    int status = smg_kernels_open("cpu", NULL, &cpu, diag);

    if (!status) {
        *out = smg_threads_count(cpu->threads);
        smg_kernels_close(cpu);
    }
    return status;
}

int smg_measure_run(const struct smg_world *w, const struct smg_measure_plan *plan, struct smg_measurement *out,
                    struct smg_diag *diag)
{
    static const struct smg_bench_subject *const subjects[] = {&smg_bench_select, &smg_bench_split, &smg_bench_attention,
                                                               &smg_bench_unpack};
    enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };
    struct run r = {.world = w, .plan = plan, .pool_bytes = pool_bytes(plan->quick), .out = out, .diag = diag};
    struct smg_kernels *k = NULL;
    uint32_t threads = 1, counts[8], series;
    int status;

    memset(out, 0, sizeof *out);
    status = count_threads(diag, &threads);
    if (!status)
        status = smg_kernels_open("reference", NULL, &r.reference, diag);
    if (status)
        return status;
    if (strcmp(plan->backend, "reference"))
        status = smg_kernels_open(plan->backend, NULL, &k, diag);
    if (status)
        goto close_reference;
    snprintf(out->where, sizeof out->where, "%s", smg_kernels_where(k ? k : r.reference));
    series = SUBJECTS + (k ? thread_counts(threads, counts) : 1);
    for (size_t i = 0; i < SUBJECTS && !status; i++)
        status = add(&r, subjects[i], k ? k : r.reference, 0, series);
    if (!status)
        status = gather_all(&r, plan->backend, threads, SUBJECTS);
    smg_kernels_close(k);
close_reference:
    smg_kernels_close(r.reference);
    return status;
}
