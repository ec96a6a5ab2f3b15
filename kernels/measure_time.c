/* The clock: cases of a series in turns, so that a slow moment of the machine falls on all of them. */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/measure_priv.h"

enum { SAMPLES_MAX = 64, CALLS_MAX = 10000 };

/* Samples of a case, at least so long each; fewer when all of them would take longer than the whole of it. */
struct pace {
    uint32_t samples;
    double sample_s, case_s;
};

static const struct pace normal = {21, 4e-3, 0.25}, quick = {5, 0.5e-3, 0.03};
enum { SAMPLES_MIN = 3 };

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one call, from `calls` in a row. */
static int sample(struct smg_kernels *k, struct smg_bench_case *c, uint32_t calls, double *seconds)
{
    double begin = now_s();
    int status = SMG_OK;

    for (uint32_t i = 0; i < calls && !status; i++)
        status = c->run(k, c, c->turn++);
    if (!status)
        status = smg_stream_sync(k, NULL);
    *seconds = (now_s() - begin) / calls;
    return status;
}

/* A call that counts for nothing, then one that tells how many make a sample. */
static int warm_up(struct smg_kernels *k, struct smg_bench_case *c, const struct pace *pace)
{
    double seconds = 0;
    int status = sample(k, c, 2, &seconds);

    if (!status)
        status = sample(k, c, 1, &seconds);
    if (status)
        return status;
    c->point.calls = (uint32_t)fmin(CALLS_MAX, fmax(1, ceil(pace->sample_s / fmax(seconds, 1e-9))));
    c->point.samples = (uint32_t)fmin(pace->samples, fmax(SAMPLES_MIN, pace->case_s / (seconds * c->point.calls)));
    return SMG_OK;
}

/* Median, and its standard error from the median deviation: 1.2533 sigma / sqrt(n) for a normal distribution; 0.5% of the median
 * at least, since a short run does not see how the machine drifts. */
static void summarise(struct smg_measure_point *p, double *x)
{
    double work[SAMPLES_MAX];

    gsl_sort(x, 1, p->samples);
    p->seconds = gsl_stats_median_from_sorted_data(x, 1, p->samples);
    p->error_s = fmax(0.005 * p->seconds, 1.2533 * gsl_stats_mad(x, 1, p->samples, work) / sqrt(p->samples));
}

int smg_bench_time(struct smg_kernels *k, struct smg_bench_case *c, size_t n, const struct smg_bench_effort *effort)
{
    const struct pace *pace = effort->quick ? &quick : &normal;
    struct pace longer = {(uint32_t)fmin(SAMPLES_MAX, pace->samples * effort->times), pace->sample_s,
                          pace->case_s * effort->times};
    double x[SMG_MEASURE_POINTS][SAMPLES_MAX];
    int status = SMG_OK;

    for (size_t i = 0; i < n && !status; i++)
        status = warm_up(k, &c[i], &longer);
    for (uint32_t s = 0; s < longer.samples && !status; s++) {
        for (size_t i = 0; i < n && !status; i++) {
            if (effort->stop && effort->stop())
                status = SMG_ERR_INTERRUPTED;
            else if (s < c[i].point.samples)
                status = sample(k, &c[i], c[i].point.calls, &x[i][s]);
        }
    }
    for (size_t i = 0; i < n && !status; i++)
        summarise(&c[i].point, x[i]);
    return status;
}
