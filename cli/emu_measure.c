/* smartgen emu measure: a fabric and this host, as the NIC and host files that a simulation takes. */
#include "config.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/emu_measure.h"
#include "cli/interrupt.h"
#include "emu/measure.h"
#include "experiments/files.h"
#include "experiments/run.h"
#include "traces/hardware_file.h"
#include "traces/text.h"
#include "traces/world.h"

/* One value of nic.json or host.json. */
struct value {
    int host;
    const char *key, *how;
    struct smg_measured_value measured;
};

enum { VALUES = 11, CHUNK_BYTES = 128 * 1024 };

static size_t list_values(const struct smg_emu_measurement *m, struct value out[VALUES])
{
    const struct value all[VALUES] = {
        {0, "rate_Bps", "slope of bytes over time of a stream of chunks, two in flight, without its first quarter", m->rate_Bps},
        {0, "latency_s", "half of the round trip of a small message", m->latency_s},
        {0, "post_cost_s", "a chain of 64 small WRITEs less one of them, per WRITE", m->post_cost_s},
        {0, "message_bytes", "what blocks with masks take longer than large WRITEs, per message, at rate_Bps", m->message_bytes},
        {0, "completion_s", "from the post of a small WRITE until its completion, less latency_s", m->completion_s},
        {0, "send_early", "share of the wire time of a message of 256 KiB that its completion does not wait for", m->send_early},
        {0, "rpc_overhead_s",
         "round trip of an on-demand request for no entry (line through 16 and 256) less that of a small message",
         m->rpc_overhead_s},
        {0, "max_message_bytes", "limit of the device", {m->max_message_bytes, 0}},
        {1, "gather_Bps_per_vcpu", "entries collected from random places, by one thread as the engine does", m->gather_Bps},
        {1, "copy_Bps", "entries copied one after the other, by one thread", m->copy_Bps},
        {1, "timer_late_s", "how late a wait of 3 to 5 ms ends", m->timer_late_s}};

    memcpy(out, all, sizeof all);
    return VALUES;
}

/* ---- The files ---- */

static json_t *value_json(const struct smg_value_field *f, double x, const char *source, const char *derivation)
{
    return json_pack("{s:f, s:s, s:s, s:s}", "value", x, "unit", f->unit, "source", source, "derivation", derivation);
}

/* What lies in no range is too small to be told from 0, or no value of a machine. */
static int fit_range(const struct smg_value_field *f, double *x, struct smg_diag *diag)
{
    if (*x < f->lo && f->zero)
        *x = 0;
    if (!strcmp(f->key, "max_message_bytes") && *x > f->hi)
        *x = f->hi;
    if ((*x == 0 && f->zero) || (*x >= f->lo && *x <= f->hi))
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_RANGE, "%s: measured %.4g %s, expected [%g, %g]: is the machine busy?", f->key, *x, f->unit,
                        f->lo, f->hi);
}

static json_t *make(const struct smg_value_field *f, const struct value *v, size_t n, int host, const char *source,
                    struct smg_diag *diag)
{
    json_t *j = json_object();

    for (; f->key && j; f++) {
        char derivation[256];
        json_t *one = NULL;
        for (size_t i = 0; i < n; i++) {
            double x = v[i].measured.value;
            if (v[i].host != host || strcmp(v[i].key, f->key))
                continue;
            if (fit_range(f, &x, diag))
                goto lost;
            snprintf(derivation, sizeof derivation, "%s; median of %d rounds, spread %.2g %%", v[i].how, SMG_MEASURE_ROUNDS,
                     100 * v[i].measured.spread);
            one = value_json(f, x, source, derivation);
        }
        if (!strcmp(f->key, "gather_exponent"))
            one = value_json(f, 0, source, "an instance of the engine gathers with one thread, however many vCPUs there are");
        if (one && json_object_set_new(j, f->key, one))
            goto lost;
    }
    return j;
lost:
    json_decref(j);
    return NULL;
}

/* The files are read back: what is written is what the reader takes. */
static int write_file(const struct smg_outdir *dir, const char *name, json_t *j, int host, struct smg_diag *diag)
{
    struct smg_nic nic;
    struct smg_host h;
    char path[SMG_PATH_MAX];
    int status = smg_outdir_file(dir, name, path);

    if (!j || status) {
        json_decref(j);
        return status ? status : diag->text[0] ? SMG_ERR_RANGE : SMG_ERR_NOMEM;
    }
    status = smg_json_write(j, path, diag);
    if (!status)
        status = host ? smg_host_load(path, &h, diag) : smg_nic_load(path, &nic, diag);
    return status;
}

static int write_folder(struct smg_outdir *dir, const struct value *v, size_t n, const char *source, struct smg_diag *diag)
{
    int status = write_file(dir, "nic.json", make(smg_nic_value_fields, v, n, 0, source, diag), 0, diag);

    if (!status)
        status = write_file(dir, "host.json", make(smg_host_value_fields, v, n, 1, source, diag), 1, diag);
    return status ? status : smg_outdir_commit(dir, diag);
}

#define SOURCE "smartgen emu measure"

/* Whether a file is absent, or an earlier measurement: a value in it says so. */
static int may_replace(const char *folder, const char *name, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    struct smg_diag unused;
    const char *key;
    json_t *root = NULL, *value;
    int measured = 0;

    if (smg_path_join(folder, name, path) || access(path, F_OK))
        return SMG_OK;
    if (!smg_file_json(path, &root, &unused)) {
        json_object_foreach(root, key, value)
        {
            const char *source = json_string_value(json_object_get(value, "source"));
            measured |= source && !strncmp(source, SOURCE, strlen(SOURCE));
        }
    }
    json_decref(root);
    if (measured)
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text, "%.400s: exists and is no measurement of this command: choose another folder", path);
    return SMG_ERR_INVALID;
}

/* A folder is one of these when it has a NIC file; others are not written over. */
static int claim(const char *path, struct smg_diag *diag)
{
    struct dirent *entry;
    DIR *folder = opendir(path);
    int others = 0, ours = 0, status;

    if (!folder)
        return SMG_OK; /* absent, or making it will say what it is */
    while ((entry = readdir(folder))) {
        others |= strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
        ours |= !strcmp(entry->d_name, "nic.json");
    }
    closedir(folder);
    if (others && !ours)
        return smg_diag_set(diag, SMG_ERR_INVALID,
                            "%s: not empty, and not a folder of such files (it has no nic.json): choose another", path);
    status = may_replace(path, "nic.json", diag);
    return status ? status : may_replace(path, "host.json", diag);
}

/* ---- The command ---- */

static const char *unit_of(const struct value *v)
{
    const struct smg_value_field *f = v->host ? smg_host_value_fields : smg_nic_value_fields;

    while (f->key && strcmp(f->key, v->key))
        f++;
    return f->key ? f->unit : "";
}

static void print_text(const struct value *v, size_t n, const char *output)
{
    const char *dot = output && strchr(output, '/') ? "" : "./";

    printf("%-10s %-22s %12s %-5s %9s  %s\n", "file", "key", "median", "unit", "spread %", "is");
    for (size_t i = 0; i < n; i++)
        printf("%-10s %-22s %12.5g %-5s %9.2g  %s\n", v[i].host ? "host.json" : "nic.json", v[i].key, v[i].measured.value,
               unit_of(&v[i]), 100 * v[i].measured.spread, v[i].how);
    if (output)
        printf("\nwritten; to simulate with them: --set network.nic=%s%s/nic.json --set host=%s%s/host.json\n", dot, output, dot,
               output);
}

static int print_json(const struct value *v, size_t n, const char *source)
{
    json_t *values = json_array(), *j;
    int bad = !values;

    for (size_t i = 0; i < n && !bad; i++)
        bad = json_array_append_new(values,
                                    json_pack("{s:s, s:s, s:f, s:s, s:f, s:s}", "file", v[i].host ? "host.json" : "nic.json",
                                              "key", v[i].key, "value", v[i].measured.value, "unit", unit_of(&v[i]), "spread",
                                              v[i].measured.spread, "how", v[i].how));
    j = json_pack("{s:s, s:i, s:o}", "source", source, "rounds", SMG_MEASURE_ROUNDS, "values", values);
    bad = bad || !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) || printf("\n") < 0;
    json_decref(j);
    return bad ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

static int read_config(const struct smg_args *a, struct smg_emu_measure_config *c)
{
    struct smg_bench_list block;
    int code;

    if (a->n_sets || a->role || a->timeline || a->batch || a->queues || a->entries || a->depth || a->places || a->memory) {
        fprintf(
            stderr,
            "smartgen emu measure: it has no scenario and no lists but --block: --set, --role, --timeline, --batch, --queues, "
            "--entries, --depth, --places and --memory do not apply\n");
        return SMG_EXIT_USAGE;
    }
    code = smg_emu_list("measure", "block", a->block ? a->block : "8K,128K", 512, 1u << 28, &block);
    if (!code && block.n == 1) /* a chunk holds a block at least */
        block.value[block.n++] = block.value[0] > CHUNK_BYTES ? block.value[0] : CHUNK_BYTES;
    if (!code && (block.n > 2 || block.value[1] < block.value[0])) {
        fprintf(stderr,
                "smartgen emu measure: --block: expected the bytes of a KV block, and of a chunk of one or more, found '%s'\n",
                a->block);
        code = SMG_EXIT_USAGE;
    }
    if (code)
        return code;
    *c = (struct smg_emu_measure_config){.fabric = a->fabric ? a->fabric : "ofi",
                                         .device = a->device,
                                         .block_bytes = block.value[0],
                                         .chunk_bytes = block.value[1],
                                         .mask_bytes = 8,
                                         .entry_bytes = a->entry_bytes ? (a->entry_bytes + 1) / 2 * 2 : 512,
                                         .samples = a->samples ? a->samples : 20,
                                         .seconds = a->seconds > 0 ? a->seconds : 0.5,
                                         .timeout_s = a->timeout_s,
                                         .stop = smg_interrupted};
    return SMG_EXIT_OK;
}

int smg_emu_measure_files(const struct smg_args *a)
{
    struct smg_emu_measure_config c;
    struct smg_emu_measurement m;
    struct smg_outdir dir = {.path = ""};
    struct value values[VALUES];
    struct smg_diag diag = {""};
    char source[300];
    size_t n;
    int code = read_config(a, &c), status, measured;

    if (code)
        return code;
    snprintf(source, sizeof source, SOURCE ", fabric %s, device %s", c.fabric, c.device ? c.device : "of its own choice");
    status = a->output ? claim(a->output, &diag) : SMG_OK;
    if (!status && a->output)
        status = smg_outdir_begin(a->output, &dir, &diag);
    if (status)
        return smg_cli_fail(status, &diag);
    status = smg_emu_measure(&c, &m, &diag);
    measured = !status;
    n = status ? 0 : list_values(&m, values);
    if (!status && a->output)
        status = write_folder(&dir, values, n, source, &diag);
    if (status) {
        smg_outdir_explain(&dir, &diag);
        code = smg_cli_fail(status, &diag);
        if (measured || status == SMG_ERR_RANGE) /* not the input is wrong, the machine is, or its disk */
            code = SMG_EXIT_FAILED;
    } else if (a->json) {
        code = print_json(values, n, source);
    } else if (!a->quiet) {
        print_text(values, n, a->output);
    }
    smg_outdir_abort(&dir);
    return code;
}
