/* Times every kernel on a GPU: bytes that it has to move, time, and the share of the bandwidth of a copy on the device, measured
 * in the same run. Built and run by gpu_check.sh.
 *
 *     gpu_bench [--backend cuda|cpu|reference] [--small] [--probe] [--json FILE] [--driver TEXT] [--toolkit TEXT]
 *
 * --probe says where it would run, and ends. Exit status: 0; 1 failed; 2 usage; 77 no GPU. On another backend the times are of
 * the host's clock: to see that the cases are accepted, not to compare. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/gpu_bench.h"

enum { REPETITIONS = 21 };

/* Between two runs so much is written, more than the last cache of any GPU holds. */
static const size_t SCRUB_BYTES = (size_t)256 << 20;

static const struct smg_bench_sizes model = {6, 7000, 1400, 8, 5, 128, 5120, 38, 256, 16, 1000};
static const struct smg_bench_sizes small = {2, 200, 40, 2, 3, 64, 96, 19, 64, 16, 20};

struct options {
    const char *backend, *json, *driver, *toolkit;
    int small, probe;
};

struct timing {
    const char *name;
    double bytes, seconds;
};

void smg_bench_need(int good, const char *what, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "gpu_bench: %s: %s\n", what, why);
    exit(1);
}

/* ---- Time ---- */

static double host_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef int (*run_fn)(struct smg_kernels *k, const void *arg);

/* Seconds of one run after the caches were scrubbed. On a GPU by events: the scrub is queued first, so that the launch costs
 * nothing. */
static double time_once(struct smg_kernels *k, void *scrub, size_t scrub_bytes, int byte, run_fn run, const void *arg)
{
    cudaEvent_t from = NULL, to = NULL;
    double seconds;
    float ms = 0;
    int status;

    smg_bench_need(!smg_memory_fill(k, scrub, byte, scrub_bytes, NULL), "scrub", smg_kernels_diag(k));
    if (k->type != &smg_kernels_cuda) {
        seconds = host_seconds();
        smg_bench_need(!run(k, arg), "run", smg_kernels_diag(k));
        return host_seconds() - seconds;
    }
    status = cudaEventCreate(&from) || cudaEventCreate(&to) || cudaEventRecord(from, k->own.native) || run(k, arg) ||
             cudaEventRecord(to, k->own.native) || smg_stream_sync(k, NULL) || cudaEventElapsedTime(&ms, from, to);
    smg_bench_need(!status, "run", smg_kernels_diag(k));
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return 1e-3 * (double)ms;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_seconds(struct smg_kernels *k, int is_small, run_fn run, const void *arg)
{
    const size_t bytes = is_small ? 1 << 16 : SCRUB_BYTES;
    double t[REPETITIONS];
    void *scrub;

    smg_bench_need(!smg_memory_alloc(k, bytes, &scrub), "scrub", smg_kernels_diag(k));
    time_once(k, scrub, bytes, 0, run, arg); /* takes its scratch, loads its code */
    for (int i = 0; i < REPETITIONS; i++)
        t[i] = time_once(k, scrub, bytes, i, run, arg);
    smg_memory_free(k, scrub);
    qsort(t, REPETITIONS, sizeof t[0], compare);
    return t[REPETITIONS / 2];
}

/* ---- What is timed ---- */

struct copy {
    void *to, *from;
    size_t bytes;
};

static int run_copy(struct smg_kernels *k, const void *arg)
{
    const struct copy *c = arg;

    return smg_memory_copy(k, c->to, c->from, c->bytes, NULL);
}

/* Bytes a second, read and written ones counted. */
static double copy_rate(struct smg_kernels *k, int is_small)
{
    struct copy c = {NULL, NULL, is_small ? 1 << 16 : SCRUB_BYTES};
    double seconds;

    smg_bench_need(!smg_memory_alloc(k, c.bytes, &c.to) && !smg_memory_alloc(k, c.bytes, &c.from), "copy", smg_kernels_diag(k));
    smg_bench_need(!smg_memory_fill(k, c.from, 1, c.bytes, NULL), "copy", smg_kernels_diag(k));
    seconds = median_seconds(k, is_small, run_copy, &c);
    smg_memory_free(k, c.to);
    smg_memory_free(k, c.from);
    return 2.0 * (double)c.bytes / seconds;
}

struct call {
    const struct smg_bench_case *what;
    union smg_bench_args args;
};

static int run_case(struct smg_kernels *k, const void *arg)
{
    const struct call *c = arg;

    return c->what->call(k, &c->args);
}

static struct timing time_case(struct smg_kernels *k, int is_small, const struct smg_bench_case *what)
{
    struct smg_bench b = {.k = k, .s = is_small ? small : model};
    struct call c = {.what = what};
    struct timing t = {what->name, 0, 0};
    int status;

    what->set(&b, &c.args);
    status = run_case(k, &c);
    if (!status)
        status = smg_stream_sync(k, NULL);
    smg_bench_need(!status, what->name, smg_kernels_diag(k));
    t.bytes = b.bytes;
    t.seconds = median_seconds(k, is_small, run_case, &c);
    while (b.n_buffers)
        smg_memory_free(k, b.buffer[--b.n_buffers]);
    return t;
}

/* ---- Results ---- */

/* Without what JSON would have to escape. */
static void write_text(FILE *f, const char *name, const char *text)
{
    fprintf(f, "  \"%s\": \"", name);
    for (; *text; text++)
        fputc(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text, f);
    fprintf(f, "\",\n");
}

static void write_json(const struct options *o, const char *where, double copy, const struct timing *t, int n)
{
    FILE *f = fopen(o->json, "w");

    smg_bench_need(f != NULL, o->json, "cannot be written");
    fprintf(f, "{\n");
    write_text(f, "where", where);
    write_text(f, "driver", o->driver);
    write_text(f, "toolkit", o->toolkit);
    fprintf(f, "  \"small\": %s,\n  \"copy_bytes_per_s\": %.6g,\n  \"kernels\": [\n", o->small ? "true" : "false", copy);
    for (int i = 0; i < n; i++)
        fprintf(f,
                "    {\"name\": \"%s\", \"bytes\": %.0f, \"seconds\": %.6g, \"bytes_per_s\": %.6g, \"share_of_copy\": %.4f}%s\n",
                t[i].name, t[i].bytes, t[i].seconds, t[i].bytes / t[i].seconds, t[i].bytes / t[i].seconds / copy,
                i + 1 < n ? "," : "");
    fprintf(f, "  ]\n}\n");
    smg_bench_need(!ferror(f) && !fclose(f), o->json, "cannot be written");
}

static int usage(void)
{
    fprintf(stderr, "usage: gpu_bench [--backend cuda|cpu|reference] [--small] [--probe] [--json FILE] [--driver TEXT]"
                    " [--toolkit TEXT]\n");
    return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name, **to;
    } texts[] = {{"--backend", &o->backend}, {"--json", &o->json}, {"--driver", &o->driver}, {"--toolkit", &o->toolkit}};

    for (int i = 1; i < argc; i++) {
        size_t t = 0;
        while (t < sizeof texts / sizeof texts[0] && strcmp(argv[i], texts[t].name))
            t++;
        if (t < sizeof texts / sizeof texts[0] && i + 1 < argc)
            *texts[t].to = argv[++i];
        else if (!strcmp(argv[i], "--small"))
            o->small = 1;
        else if (!strcmp(argv[i], "--probe"))
            o->probe = 1;
        else
            return 0;
    }
    return 1;
}

static const struct smg_kernels_type *type_of(const char *name)
{
    static const struct smg_kernels_type *const types[] = {&smg_kernels_cuda, &smg_kernels_cpu, &smg_kernels_reference};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i]->name, name))
            return types[i];
    return NULL;
}

static void time_all(struct smg_kernels *k, const struct options *o)
{
    struct timing t[64];
    const double copy = copy_rate(k, o->small);
    int n = 0;

    printf("%s; driver %s, toolkit %s; copy on the device %.1f GB/s, read and written\n", smg_kernels_where(k), o->driver,
           o->toolkit, copy * 1e-9);
    printf("%-16s %12s %10s %8s %6s\n", "kernel", "bytes", "us", "GB/s", "/copy");
    for (; smg_bench_cases[n].name; n++) {
        smg_bench_need(n < 64, "kernels", "too many");
        t[n] = time_case(k, o->small, &smg_bench_cases[n]);
        printf("%-16s %12.0f %10.2f %8.1f %6.2f\n", t[n].name, t[n].bytes, t[n].seconds * 1e6, t[n].bytes / t[n].seconds * 1e-9,
               t[n].bytes / t[n].seconds / copy);
        fflush(stdout);
    }
    if (o->json)
        write_json(o, smg_kernels_where(k), copy, t, n);
}

int main(int argc, char **argv)
{
    struct options o = {"cuda", NULL, "unknown", "unknown", 0, 0};
    struct smg_kernels *k;
    struct smg_diag diag = {""};
    int status;

    if (!parse(argc, argv, &o) || !type_of(o.backend))
        return usage();
    status = smg_kernels_open_type(type_of(o.backend), NULL, &k, &diag);
    if (status) {
        fprintf(stderr, "gpu_bench: %s\n", diag.text);
        return status == SMG_ERR_UNSUPPORTED ? 77 : 1;
    }
    if (o.probe)
        printf("%s\n", smg_kernels_where(k));
    else
        time_all(k, &o);
    smg_kernels_close(k);
    return 0;
}
