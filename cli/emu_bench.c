/* smartgen emu bench: the fabric and the engine's paths, measured between two processes on this host. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/emu_measure.h"
#include "cli/interrupt.h"
#include "emu/bench.h"

int smg_emu_list(const char *action, const char *option, const char *text, uint32_t low, uint32_t high,
                 struct smg_bench_list *out)
{
    const char *at = text;

    out->n = 0;
    do {
        char *end;
        double x;
        errno = 0;
        x = strtod(at, &end);
        x *= *end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1;
        if (end != at && (*end == 'K' || *end == 'M'))
            end++;
        if (end == at || errno || (*end && *end != ',') || (*end && !end[1]) || !(x >= low && x <= high) || x != (uint32_t)x ||
            out->n == SMG_BENCH_LIST) {
            fprintf(stderr, "smartgen emu %s: --%s: expected 1 to %d whole numbers in [%u, %u] separated by commas, found '%s'\n",
                    action, option, SMG_BENCH_LIST, low, high, text);
            return SMG_EXIT_USAGE;
        }
        out->value[out->n++] = (uint32_t)x;
        at = *end ? end + 1 : end;
    } while (*at);
    return 0;
}

static void print_table(const struct smg_bench_results *r)
{
    printf("%10s %5s %6s %9s %11s  %17s %17s %17s\n", "WRITE of", "batch", "queues", "GB/s", "messages/s", "post p50/p99 us",
           "wire p50/p99 us", "taken p50/p99 us");
    for (size_t i = 0; i < r->n_write; i++) {
        const struct smg_bench_write *w = &r->write[i];
        printf("%10u %5u %6u %9.4f %11.0f  %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", w->block_bytes, w->batch, w->queues,
               1e-9 * w->bytes_per_s, w->messages_per_s, w->post.p50_us, w->post.p99_us, w->wire.p50_us, w->wire.p99_us,
               w->completion.p50_us, w->completion.p99_us);
    }
    printf("\n%10s %11s %14s %14s %6s\n", "block of", "mask bytes", "alone us", "with mask us", "ratio");
    for (size_t i = 0; i < r->n_masked; i++) {
        const struct smg_bench_masked *m = &r->masked[i];
        printf("%10u %11u %14.2f %14.2f %6.3f\n", m->block_bytes, m->mask_bytes, 1e6 * m->alone_s, 1e6 * m->masked_s,
               m->masked_s / m->alone_s);
    }
    printf("\n%10s %14s %12s %11s %11s\n", "entries", "request bytes", "reply bytes", "p50 us", "p99 us");
    for (size_t i = 0; i < r->n_trip; i++) {
        const struct smg_bench_trip *t = &r->trip[i];
        printf("%10u %14u %12u %11.1f %11.1f\n", t->entries, t->request_bytes, t->reply_bytes, t->trip.p50_us, t->trip.p99_us);
    }
}

static json_t *percentiles(const struct smg_bench_percentiles *p)
{
    return json_pack("{s:f, s:f}", "p50_us", p->p50_us, "p99_us", p->p99_us);
}

static int print_json(const struct smg_bench_config *c, const struct smg_bench_results *r)
{
    json_t *writes = json_array(), *masked = json_array(), *trips = json_array(), *all;
    int bad = 0;

    for (size_t i = 0; i < r->n_write; i++) {
        const struct smg_bench_write *w = &r->write[i];
        bad |= json_array_append_new(writes, json_pack("{s:i, s:i, s:i, s:f, s:f, s:o, s:o, s:o}", "block_bytes", w->block_bytes,
                                                       "batch", w->batch, "queues", w->queues, "bytes_per_s", w->bytes_per_s,
                                                       "messages_per_s", w->messages_per_s, "post", percentiles(&w->post), "wire",
                                                       percentiles(&w->wire), "completion", percentiles(&w->completion)));
    }
    for (size_t i = 0; i < r->n_masked; i++) {
        const struct smg_bench_masked *m = &r->masked[i];
        bad |= json_array_append_new(masked, json_pack("{s:i, s:i, s:f, s:f}", "block_bytes", m->block_bytes, "mask_bytes",
                                                       m->mask_bytes, "alone_s", m->alone_s, "masked_s", m->masked_s));
    }
    for (size_t i = 0; i < r->n_trip; i++) {
        const struct smg_bench_trip *t = &r->trip[i];
        bad |= json_array_append_new(trips,
                                     json_pack("{s:i, s:i, s:i, s:o}", "entries", t->entries, "request_bytes", t->request_bytes,
                                               "reply_bytes", t->reply_bytes, "trip", percentiles(&t->trip)));
    }
    all = json_pack("{s:s, s:s?, s:s, s:i, s:i, s:f, s:o, s:o, s:o}", "fabric", c->fabric, "device", c->device, "memory",
                    c->on_gpu ? "gpu" : "host", "depth", c->depth, "samples", c->samples, "seconds", c->seconds, "write", writes,
                    "masked", masked, "on_demand", trips);
    bad |= !all || json_dumpf(all, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) || printf("\n") < 0;
    json_decref(all);
    return bad;
}

int smg_emu_bench(const struct smg_args *a)
{
    struct smg_bench_config c = {.fabric = a->fabric ? a->fabric : "ofi",
                                 .device = a->device,
                                 .entry_bytes = a->entry_bytes ? a->entry_bytes : 512,
                                 .depth = a->depth ? a->depth : 16,
                                 .places = a->places,
                                 .on_gpu = a->memory && !strcmp(a->memory, "gpu"),
                                 .samples = a->samples ? a->samples : 500,
                                 .seconds = a->seconds > 0 ? a->seconds : 0.5,
                                 .timeout_s = a->timeout_s,
                                 .stop = smg_interrupted};
    struct smg_bench_results *r;
    struct smg_diag diag = {""};
    int code, status;

    if (a->n_sets || a->output || a->role || a->timeline) {
        fprintf(stderr,
                "smartgen emu bench: it has no scenario and writes no folder: --set, --output, --role and --timeline do not "
                "apply\n");
        return SMG_EXIT_USAGE;
    }
    if (a->memory && !c.on_gpu && strcmp(a->memory, "host")) {
        fprintf(stderr, "smartgen emu bench: --memory: expected host or gpu, found '%s'\n", a->memory);
        return SMG_EXIT_USAGE;
    }
    code = smg_emu_list("bench", "block", a->block ? a->block : "4K,64K,1M", 8, 1u << 30, &c.block);
    code = code ? code : smg_emu_list("bench", "batch", a->batch ? a->batch : "1,8", 1, 1024, &c.batch);
    code = code ? code : smg_emu_list("bench", "queues", a->queues ? a->queues : "1,3", 1, 3, &c.queues);
    code = code ? code : smg_emu_list("bench", "entries", a->entries ? a->entries : "1,16,128,1024", 1, 65536, &c.entries);
    if (code)
        return code;
    r = calloc(1, sizeof *r);
    if (!r)
        return smg_cli_fail(SMG_ERR_NOMEM, NULL);
    status = smg_bench_run(&c, r, &diag);
    if (status)
        code = smg_cli_fail(status, &diag);
    else if (a->json)
        code = print_json(&c, r) ? SMG_EXIT_FAILED : SMG_EXIT_OK;
    else
        print_table(r);
    free(r);
    return code;
}
