/* From fits to values of hardware files, each with the words that say how it was found. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cli/kernels_measure.h"
#include "traces/scenario.h"

/* The least that a host's file takes beside 0. */
#define EXPONENT_MIN 1e-3

enum part { RATE, FIXED, PER_THREAD, EXPONENT };

static const struct {
    const char *key;
    enum smg_measured what;
    enum part part;
    const char *note; /* what the number leaves out */
} keys[SMG_MEASURE_VALUES] = {
    {"select_Bps", SMG_MEASURE_SELECT, RATE, ""},
    {"select_overhead_s", SMG_MEASURE_SELECT, FIXED, ""},
    {"split_Bps", SMG_MEASURE_SPLIT, RATE, ""},
    {"split_overhead_s", SMG_MEASURE_SPLIT, FIXED, ""},
    {"memory_Bps", SMG_MEASURE_ATTENTION, RATE, "; KV entries read by attention, which stand for all of memory"},
    {"decode_layer_overhead_s", SMG_MEASURE_ATTENTION, FIXED,
     "; the fixed part of one call of attention alone: what else a layer launches is not in it"},
    {"hack_unpack_Bps", SMG_MEASURE_UNPACK, RATE, ""},
    {"gather_Bps_per_vcpu", SMG_MEASURE_GATHER, PER_THREAD, ""},
    {"gather_exponent", SMG_MEASURE_GATHER, EXPONENT, ""},
};

/* ---- Where ---- */

/* "model name" of /proc/cpuinfo; where there is none, the machine's type. */
static void cpu_name(char *out, size_t bytes)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256], *colon;
    struct utsname u;

    snprintf(out, bytes, "%s", uname(&u) ? "unknown machine" : u.machine);
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) || !colon[1] || !colon[2])
            continue;
        snprintf(out, bytes, "%s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

void smg_measure_origin(const struct smg_measure_plan *plan, const struct smg_measurement *m, struct smg_measure_origin *out)
{
    static const char form[] = "smartgen kernels measure --backend %s%s, smartgen %s, on %s; %s";

    cpu_name(out->machine, sizeof out->machine);
    snprintf(out->source, sizeof out->source, form, plan->backend, plan->quick ? " --quick" : "", PACKAGE_VERSION, out->machine,
             m->where);
    snprintf(out->host_source, sizeof out->host_source, form, plan->backend, plan->quick ? " --quick" : "", PACKAGE_VERSION,
             out->machine, m->host_where);
}

/* ---- What ---- */

/* A text that grows; what does not fit is cut. */
struct words {
    char *text;
    size_t used, bytes;
};

static void __attribute__((format(printf, 2, 3))) say(struct words *w, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(w->text + w->used, w->bytes - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used = w->used + (size_t)n < w->bytes ? w->used + (size_t)n : w->bytes - 1;
}

static const char *selector_of(const struct smg_world *w)
{
    static const char *const name[] = {"infinigen", "hata", "quest", "oracle"};

    return name[w->scenario.selector];
}

static void say_line(struct words *t, const struct smg_world *w, const struct smg_measure_series *s)
{
    const struct smg_line_fit *f = &s->fit;

    say(t, "kernel %s", s->kernel);
    if (s->what == SMG_MEASURE_SELECT)
        say(t, " of selector %s", selector_of(w));
    say(t, ", model %s: t = a + b x through", w->model.name);
    for (size_t i = 0; i < s->n; i++)
        say(t, "%s %.4g B %.4g s", i ? "," : "", s->point[i].bytes, s->point[i].seconds);
    say(t, "; a = %.3g +- %.2g s", f->intercept, f->intercept_error);
    if (f->origin)
        say(t, " (%.3g found, 0 within its error)", f->found);
    say(t, ", b = %.4g +- %.2g s/B, R2 %.4f, residual %.1f%%, largest %.1f%%", f->slope, f->slope_error, f->r2, 100 * f->rms,
        100 * f->worst);
}

static void say_gather(struct words *t, const struct smg_world *w, const struct smg_measurement *m)
{
    const char *comma = "";

    say(t, "gather of %u B entries, model %s: t = x / rate;", (unsigned)smg_model_entry_bytes(&w->model), w->model.name);
    for (size_t i = 0; i < m->n; i++) {
        const struct smg_measure_series *s = &m->series[i];
        if (s->what != SMG_MEASURE_GATHER)
            continue;
        say(t, "%s %u thread%s %.4g B/s (residual %.1f%%)", comma, s->threads, s->threads > 1 ? "s" : "", 1 / s->fit.slope,
            100 * s->fit.rms);
        comma = ",";
    }
    if (m->gather.points > 1)
        say(t, "; log rate over log threads: %.4g B/s, exponent %.3f, residual %.1f%%", m->gather.factor, m->gather.exponent,
            100 * m->gather.rms);
    if (m->gather.exponent < EXPONENT_MIN)
        say(t, "; more threads are no faster here: exponent 0, and the mean of the rates' logarithms");
    if (m->gather.points < 2)
        say(t, "; one number of threads tells no exponent: 1 is assumed");
}

/* A rate that does not grow with threads has exponent 0; the one rate is then the mean of the logarithms. */
static double gather_part(const struct smg_measurement *m, enum part part)
{
    double sum = 0;
    size_t n = 0;

    if (m->gather.exponent >= EXPONENT_MIN)
        return part == EXPONENT ? m->gather.exponent : m->gather.factor;
    for (size_t i = 0; i < m->n; i++)
        if (m->series[i].what == SMG_MEASURE_GATHER) {
            sum += log(1 / m->series[i].fit.slope);
            n++;
        }
    return part == EXPONENT ? 0 : exp(sum / (double)n);
}

static double part_of(const struct smg_measurement *m, const struct smg_measure_series *s, enum part part)
{
    switch (part) {
    case RATE:
        return 1 / s->fit.slope;
    case FIXED:
        return s->fit.intercept >= 1e-9 ? s->fit.intercept : 0;
    case PER_THREAD:
    case EXPONENT:
        break;
    }
    return gather_part(m, part);
}

static const struct smg_value_field *field_of(const struct smg_value_field *fields, const char *key)
{
    while (fields->key && strcmp(fields->key, key))
        fields++;
    return fields->key ? fields : NULL;
}

/* The last series of a kind. */
static const struct smg_measure_series *series_of(const struct smg_measurement *m, enum smg_measured what)
{
    for (size_t i = m->n; i--;)
        if (m->series[i].what == what)
            return &m->series[i];
    return NULL;
}

/* What a simulation computes with now. A rate that nobody measured is that of the memory. */
static void find_present(const struct smg_world *w, struct smg_measure_value *v)
{
    const char *from = v->host ? (const char *)&w->host : (const char *)&w->decode_gpu;

    memcpy(&v->present, from + v->field->offset, sizeof v->present);
    if (v->field->optional && v->present <= 0 && strstr(v->field->key, "_Bps")) {
        v->present = w->decode_gpu.memory_Bps;
        v->present_key = "memory_Bps";
    }
}

static int fits(const struct smg_value_field *f, double x)
{
    return (f->zero && x == 0) || (x >= f->lo && x <= f->hi);
}

static void explain(const struct smg_world *w, const struct smg_measure_plan *plan, const struct smg_measurement *m,
                    const char *note, struct smg_measure_value *v)
{
    struct words t = {v->derivation, 0, sizeof v->derivation};

    if (v->host)
        say_gather(&t, w, m);
    else
        say_line(&t, w, v->series);
    say(&t, "%s", note);
    if (!v->host && strcmp(plan->backend, "cuda"))
        say(&t, "; this is the CPU, measured as if it were the GPU");
    if (plan->quick)
        say(&t, "; --quick: a rough value");
}

size_t smg_measure_values(const struct smg_world *w, const struct smg_measure_plan *plan, const struct smg_measurement *m,
                          struct smg_measure_value *out)
{
    size_t n = 0;

    for (size_t i = 0; i < SMG_MEASURE_VALUES; i++) {
        struct smg_measure_value *v = &out[n];
        memset(v, 0, sizeof *v);
        v->host = keys[i].what == SMG_MEASURE_GATHER;
        v->field = field_of(v->host ? smg_host_value_fields : smg_gpu_value_fields, keys[i].key);
        v->series = series_of(m, keys[i].what);
        if (!v->field || !v->series)
            continue;
        n++;
        find_present(w, v);
        v->kept = v->series->skipped;
        if (v->kept)
            continue;
        v->value = part_of(m, v->series, keys[i].part);
        explain(w, plan, m, keys[i].note, v);
        if (!fits(v->field, v->value))
            v->kept = "the measured value is outside the range of this key";
    }
    return n;
}
