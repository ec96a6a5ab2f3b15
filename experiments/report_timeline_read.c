/* Reads a timeline.json for the report: which rows and slices a page shows, and where it is cut. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/report_timeline.h"
#include "experiments/timeline.h"
#include "traces/text.h"

const char *const smg_shown_kinds[SMG_SHOWN_KINDS] = {"queued",   "prefill",     "handoff",   "join",   "decode", "push",
                                                      "metadata", "speculative", "on-demand", "select", "copy",   "control"};

/* Operations by name; everything else on a GPU is computing. */
static const struct {
    const char *name;
    enum smg_shown_kind kind;
} operations[] = {
    {"prefill_layer", SMG_SHOWN_PREFILL},
    {"attention", SMG_SHOWN_DECODE},
    {"ffn", SMG_SHOWN_DECODE},
    {"select", SMG_SHOWN_SELECT},
    {"split", SMG_SHOWN_SELECT},
    {"metadata", SMG_SHOWN_METADATA},
    {"push", SMG_SHOWN_PUSH},
    {"speculative", SMG_SHOWN_SPECULATIVE},
    {"reply", SMG_SHOWN_ON_DEMAND},
    {"reply_gather", SMG_SHOWN_ON_DEMAND},
    {"index", SMG_SHOWN_ON_DEMAND},
    {"remote_copy", SMG_SHOWN_ON_DEMAND},
    {"offload", SMG_SHOWN_COPY},
    {"local_gather", SMG_SHOWN_COPY},
    {"local_copy", SMG_SHOWN_COPY},
    {"scatter", SMG_SHOWN_COPY},
    {"keep", SMG_SHOWN_COPY},
};

/* Lanes and the rows they are drawn in. Posted receives are not shown: the reply is. */
static const struct {
    const char *category;
    enum smg_shown_resource row;
} lanes[] = {
    {"GPU main", SMG_SHOWN_GPU_MAIN}, {"GPU select", SMG_SHOWN_GPU_SELECT}, {"H2D", SMG_SHOWN_H2D},
    {"D2H", SMG_SHOWN_D2H},           {"CPU gather", SMG_SHOWN_CPU},        {"NIC in", SMG_SHOWN_NIC_IN},
    {"push", SMG_SHOWN_NIC_OUT},      {"reply", SMG_SHOWN_NIC_OUT},         {"control", SMG_SHOWN_NIC_OUT},
};

static const struct {
    const char *category;
    enum smg_shown_kind kind;
} stages[] = {
    {"queue", SMG_SHOWN_QUEUED}, {"prefill", SMG_SHOWN_PREFILL}, {"handoff", SMG_SHOWN_HANDOFF},
    {"join", SMG_SHOWN_JOIN},    {"decode", SMG_SHOWN_DECODE},   {"push", SMG_SHOWN_PUSH},
};

static const char *text_of(const json_t *j, const char *key)
{
    const json_t *value = json_object_get(j, key);

    return json_is_string(value) ? json_string_value(value) : "";
}

static double number_of(const json_t *j, const char *key)
{
    double x = json_number_value(json_object_get(j, key));

    return isfinite(x) ? x : 0;
}

static uint32_t id_of(const json_t *j, const char *key)
{
    double x = number_of(j, key);

    return x >= 0 && x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}

/* ---- Processes and names ---- */

static int add_process(struct smg_shown *s, const json_t *event)
{
    struct smg_shown_process *grown = realloc(s->process, (s->processes + 1) * sizeof *grown);

    if (!grown)
        return SMG_ERR_NOMEM;
    s->process = grown;
    s->process[s->processes].pid = id_of(event, "pid");
    snprintf(s->process[s->processes++].text, SMG_NAME_MAX, "%.63s", text_of(json_object_get(event, "args"), "name"));
    return SMG_OK;
}

static int add_processes(struct smg_shown *s, const json_t *events)
{
    int status = SMG_OK;
    size_t i;
    json_t *e;

    json_array_foreach(events, i, e) if (!strcmp(text_of(e, "name"), "process_name") && !status) status = add_process(s, e);
    return status;
}

static uint32_t rank_of(const struct smg_shown *s, uint32_t pid)
{
    if (pid == SMG_TIMELINE_REQUESTS)
        return 0;
    for (size_t i = 0; i < s->processes; i++)
        if (s->process[i].pid == pid && !strncmp(s->process[i].text, "decode", 6))
            return 1;
    return 2;
}

/* The table has room for all purposes; should it ever be full, the last name stands for the rest. */
static uint32_t name_of(struct smg_shown *s, const char *text, enum smg_shown_kind kind)
{
    size_t i;

    for (i = 0; i < s->names; i++)
        if (s->name[i].kind == kind && !strcmp(s->name[i].text, text))
            return (uint32_t)i;
    if (i == sizeof s->name / sizeof s->name[0])
        return (uint32_t)i - 1;
    snprintf(s->name[i].text, SMG_NAME_MAX, "%.63s", text);
    s->name[i].kind = kind;
    s->names++;
    return (uint32_t)i;
}

/* ---- Slices ---- */

static int add_slice(struct smg_shown *s, const struct smg_shown_slice *slice)
{
    if (s->slices == s->cap_slices) {
        size_t cap = s->cap_slices ? 2 * s->cap_slices : 1024;
        struct smg_shown_slice *grown = realloc(s->slice, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        s->slice = grown;
        s->cap_slices = cap;
    }
    s->slice[s->slices++] = *slice;
    return SMG_OK;
}

static void set_details(struct smg_shown_slice *slice, const json_t *args, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        slice->detail[i] = number_of(args, keys[i]);
}

static int take_stage(struct smg_shown *s, struct smg_shown_slice *slice, const json_t *event, const json_t *args)
{
    static const char *const token[] = {"remote_entries", "selected_entries", "on_demand_bytes", "speculative_bytes"};
    static const char *const prefill[] = {"prompt_tokens", "kr_blocks", "total_blocks"};
    const char *name = text_of(event, "name"), *category = text_of(event, "cat");
    size_t i;

    slice->row = id_of(args, "request");
    if (slice->row == UINT32_MAX)
        return SMG_OK;
    s->requests = slice->row >= s->requests ? slice->row + 1 : s->requests;
    for (i = 0; i < sizeof stages / sizeof stages[0] && strcmp(stages[i].category, category); i++)
        ;
    if (i == sizeof stages / sizeof stages[0] || slice->row >= SMG_SHOWN_REQUESTS || s->slices >= SMG_SHOWN_STAGES)
        return SMG_OK;
    slice->name = name_of(s, stages[i].kind == SMG_SHOWN_DECODE ? "token" : name, stages[i].kind);
    if (stages[i].kind == SMG_SHOWN_DECODE) {
        set_details(slice, args, token, 4);
        memmove(slice->detail + 1, slice->detail, 4 * sizeof slice->detail[0]);
        slice->detail[0] = strtod(name + strcspn(name, "0123456789"), NULL);
    } else if (stages[i].kind == SMG_SHOWN_PREFILL) {
        set_details(slice, args, prefill, 3);
    }
    return add_slice(s, slice);
}

static int take_operation(struct smg_shown *s, struct smg_shown_slice *slice, const json_t *event, const json_t *args)
{
    static const char *const details[] = {"request", "step", "layer", "layers", "bytes"};
    const char *name = text_of(event, "name"), *category = text_of(event, "cat");
    size_t i, k;

    for (i = 0; i < sizeof lanes / sizeof lanes[0] && strcmp(lanes[i].category, category); i++)
        ;
    if (i == sizeof lanes / sizeof lanes[0])
        return SMG_OK;
    set_details(slice, args, details, 5);
    slice->detail[0] += json_object_get(args, "request") != NULL;
    slice->detail[2] += json_object_get(args, "layer") != NULL;
    if (!strcmp(category, "control") && !slice->detail[4])
        return SMG_OK; /* a message and nothing beside it */
    slice->row = lanes[i].row;
    for (k = 0; k < sizeof operations / sizeof operations[0] && strcmp(operations[k].name, name); k++)
        ;
    slice->name = name_of(s, name, k < sizeof operations / sizeof operations[0] ? operations[k].kind : SMG_SHOWN_CONTROL);
    s->operations++;
    return add_slice(s, slice);
}

/* requests: those of the requests, else those of the instances. */
static int take_events(struct smg_shown *s, const json_t *events, int requests)
{
    int status = SMG_OK;
    size_t i;
    json_t *e;

    json_array_foreach(events, i, e)
    {
        struct smg_shown_slice slice = {0};
        if (status || strcmp(text_of(e, "ph"), "X") || (id_of(e, "pid") == SMG_TIMELINE_REQUESTS) != requests)
            continue;
        slice.pid = id_of(e, "pid");
        slice.rank = rank_of(s, slice.pid);
        slice.tid = id_of(e, "tid");
        slice.start = llround(number_of(e, "ts") * 10);
        slice.ticks = llround((number_of(e, "ts") + number_of(e, "dur")) * 10) - slice.start;
        s->end = slice.start + slice.ticks > s->end ? slice.start + slice.ticks : s->end;
        status = (requests ? take_stage : take_operation)(s, &slice, e, json_object_get(e, "args"));
    }
    return status;
}

/* ---- Order and cut ---- */

static int by_start(const void *a, const void *b)
{
    const struct smg_shown_slice *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
    const struct smg_shown_slice *x = a, *y = b;
    int c = compare(x->rank, y->rank);

    c = c ? c : compare(x->pid, y->pid);
    c = c ? c : compare(x->row, y->row);
    c = c ? c : compare(x->tid, y->tid);
    c = c ? c : by_start(a, b);
    return c ? c : (x->ticks > y->ticks) - (x->ticks < y->ticks);
}

/* Drops the operations that start last, and all that start at the same time as the first of them: that does not depend on how
 * qsort orders equals. The first `kept` slices are those of the requests. */
static void cut(struct smg_shown *s, size_t kept)
{
    s->cut = -1;
    if (s->slices - kept <= SMG_SHOWN_OPERATIONS)
        return;
    qsort(s->slice + kept, s->slices - kept, sizeof *s->slice, by_start);
    s->slices = kept + SMG_SHOWN_OPERATIONS;
    s->cut = s->slice[s->slices].start;
    while (s->slices > kept && s->slice[s->slices - 1].start == s->cut)
        s->slices--;
}

int smg_shown_read(const char *path, struct smg_shown *out, struct smg_diag *diag)
{
    json_t *j = NULL, *events;
    size_t stages_n;
    int status;

    memset(out, 0, sizeof *out);
    status = smg_file_json(path, &j, diag);
    if (status)
        return status;
    events = json_object_get(j, "traceEvents");
    if (!json_is_array(events)) {
        json_decref(j);
        return smg_diag_set(diag, SMG_ERR_PARSE, "%s: key 'traceEvents': expected an array", path);
    }
    status = add_processes(out, events);
    if (!status)
        status = take_events(out, events, 1);
    stages_n = out->slices;
    if (!status)
        status = take_events(out, events, 0);
    json_decref(j);
    if (status)
        return status;
    cut(out, stages_n);
    if (out->slices)
        qsort(out->slice, out->slices, sizeof *out->slice, by_place);
    return SMG_OK;
}

void smg_shown_free(struct smg_shown *s)
{
    free(s->slice);
    free(s->process);
}
