#include "experiments/timeline_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/files.h"
#include "traces/text.h"

/* Kinds of track beside the lanes: what a NIC receives from one sender, and receives that wait for a reply. */
enum { NIC_IN = SMG_LANES, RECEIVES, TRACK_KINDS };

/* Rows of a track. Lanes are in order, so that more than two are rare; what would need more overlaps in the last one. */
enum { ROWS_MAX = 8 };

struct smg_timeline_track {
    uint64_t key;
    unsigned rows;
    int64_t end_ns[ROWS_MAX]; /* of the last slice of each row */
};

/* ---- Events ---- */

int64_t smg_timeline_ns(double seconds)
{
    return (int64_t)llround(seconds * 1e9);
}

static void print_us(FILE *f, const char *key, int64_t ns)
{
    fprintf(f, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

/* Leaves "args" open. */
void smg_timeline_begin(struct smg_timeline *t, const char *name, const char *category, uint32_t pid, uint32_t tid,
                        const int64_t ns[2])
{
    fprintf(t->f, "%s\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u", t->any ? "," : "", name, category,
            pid, tid);
    print_us(t->f, "ts", ns[0]);
    print_us(t->f, "dur", ns[1] - ns[0]);
    fputs(",\"args\":{", t->f);
    t->any = 1;
    if (ns[1] > t->last_ns)
        t->last_ns = ns[1];
}

void smg_timeline_end(struct smg_timeline *t)
{
    fputs("}}", t->f);
}

/* Name and place in the order of a process (tid 0) or a track. */
void smg_timeline_name(struct smg_timeline *t, uint32_t pid, uint32_t tid, const char *name, uint32_t place)
{
    const char *what = tid ? "thread" : "process";

    for (int i = 0; i < 2; i++) {
        fprintf(t->f, "%s\n{\"name\":\"%s_%s\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{", t->any ? "," : "", what,
                i ? "sort_index" : "name", pid, tid);
        if (i)
            fprintf(t->f, "\"sort_index\":%u}}", place);
        else
            fprintf(t->f, "\"name\":\"%s\"}}", name);
        t->any = 1;
    }
}

/* ---- Tracks ---- */

/* *found is NULL when there is no memory, which close will say. *is_new: it had not been asked for before. */
static void find_track(struct smg_timeline *t, uint32_t pid, unsigned kind, uint16_t peer, struct smg_timeline_track **found,
                       int *is_new)
{
    uint64_t key = (uint64_t)pid << 32 | kind << 16 | peer;
    size_t low = 0, high = t->tracks;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->track[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    *is_new = low == t->tracks || t->track[low].key != key;
    if (*is_new && t->tracks == t->cap_tracks) {
        size_t cap = t->cap_tracks ? 2 * t->cap_tracks : 64;
        struct smg_timeline_track *grown = realloc(t->track, cap * sizeof *grown);
        *found = NULL;
        if (!grown) {
            t->status = SMG_ERR_NOMEM;
            return;
        }
        t->track = grown;
        t->cap_tracks = cap;
    }
    if (*is_new) {
        memmove(t->track + low + 1, t->track + low, (t->tracks++ - low) * sizeof *t->track);
        memset(t->track + low, 0, sizeof *t->track);
        t->track[low].key = key;
    }
    *found = &t->track[low];
}

static void name_track(char *to, size_t bytes, unsigned kind, uint16_t peer, unsigned row)
{
    static const char *const names[TRACK_KINDS] = {"none",
                                                   "GPU main",
                                                   "GPU select",
                                                   "copy engine H2D",
                                                   "copy engine D2H",
                                                   "CPU gather",
                                                   "NIC out: push to instance",
                                                   "NIC out: reply to instance",
                                                   "NIC out: control to instance",
                                                   "NIC in: from instance",
                                                   "waiting for replies of instance"};
    int n = snprintf(to, bytes, "%s", names[kind]);

    if (kind >= SMG_LANE_PUSH)
        n += snprintf(to + n, bytes - (size_t)n, " %u", peer);
    if (row)
        snprintf(to + n, bytes - (size_t)n, " (row %u)", row + 1);
}

/* The row whose last slice ended latest, of those that have ended; slices come in the order of their ends. */
static unsigned choose_row(const struct smg_timeline_track *track, int64_t start_ns)
{
    unsigned best = track->rows;

    for (unsigned i = 0; i < track->rows; i++)
        if (track->end_ns[i] <= start_ns && (best == track->rows || track->end_ns[i] > track->end_ns[best]))
            best = i;
    return best < ROWS_MAX ? best : ROWS_MAX - 1;
}

/* The id of the row where a slice goes; 0: no memory. */
static uint32_t place(struct smg_timeline *t, uint32_t pid, unsigned kind, uint16_t peer, const int64_t ns[2])
{
    char name[64];
    struct smg_timeline_track *track;
    int is_new;
    unsigned row;
    uint32_t tid;

    find_track(t, pid, kind, peer, &track, &is_new);
    if (!track)
        return 0;
    row = choose_row(track, ns[0]);
    tid = (kind << 16 | peer) * ROWS_MAX + row;
    if (row == track->rows) {
        track->rows++;
        name_track(name, sizeof name, kind, peer, row);
        smg_timeline_name(t, pid, tid, name, tid);
    }
    track->end_ns[row] = ns[1];
    return tid;
}

int smg_timeline_first(struct smg_timeline *t, uint32_t pid)
{
    struct smg_timeline_track *track;
    int is_new;

    find_track(t, pid, 0, 0, &track, &is_new);
    return is_new;
}

/* ---- Operations ---- */

static const char *lane_name(unsigned kind)
{
    static const char *const names[TRACK_KINDS] = {"none", "GPU main", "GPU select", "H2D",    "D2H",    "CPU gather",
                                                   "push", "reply",    "control",    "NIC in", "receive"};

    return names[kind];
}

/* Work of decode on its whole batch belongs to no request. */
static int is_of_batch(uint16_t purpose)
{
    return purpose == SMG_FOR_ATTENTION || purpose == SMG_FOR_SELECT || purpose == SMG_FOR_SPLIT || purpose == SMG_FOR_FFN ||
           purpose == SMG_FOR_LOCAL_GATHER || purpose == SMG_FOR_LOCAL_COPY;
}

static void put_operation(struct smg_timeline *t, const struct smg_action *a, uint32_t pid, unsigned kind, uint16_t peer,
                          const int64_t ns[2])
{
    uint32_t tid = place(t, pid, kind, peer, ns);

    if (!tid)
        return;
    smg_timeline_begin(t, a->purpose ? smg_purpose_name(a->purpose) : smg_message_name(a->msg.kind), lane_name(kind), pid, tid,
                       ns);
    if (!is_of_batch(a->purpose))
        fprintf(t->f, "\"request\":%u,", a->request);
    if (a->step)
        fprintf(t->f, "\"step\":%u,", a->step);
    fprintf(t->f, "\"layer\":%u,", a->layer_lo);
    if (a->layer_hi > a->layer_lo + 1)
        fprintf(t->f, "\"layers\":%u,", a->layer_hi - a->layer_lo);
    if (a->entries)
        fprintf(t->f, "\"entries\":%" PRIu64 ",", a->entries);
    fprintf(t->f, "\"bytes\":%" PRIu64, a->bytes);
    smg_timeline_end(t);
}

void smg_timeline_operation(struct smg_timeline *t, const struct smg_op *op, double start_s, double end_s)
{
    const struct smg_action *a = &op->action;
    int64_t ns[2] = {smg_timeline_ns(start_s), smg_timeline_ns(end_s)};
    unsigned kind = a->kind == SMG_ACT_RECV ? RECEIVES : a->lane;

    if (!kind || kind >= TRACK_KINDS)
        return;
    put_operation(t, a, op->instance, kind, a->lane >= SMG_LANE_PUSH ? a->peer : 0, ns);
    if (a->bytes && (a->kind == SMG_ACT_WRITE || a->kind == SMG_ACT_REPLY || a->kind == SMG_ACT_SEND))
        put_operation(t, a, a->peer, NIC_IN, op->instance, ns);
}

/* ---- Files ---- */

static int create(const char *path, int part, struct smg_timeline **out, struct smg_diag *diag)
{
    struct smg_timeline *t = calloc(1, sizeof *t);
    int status;

    if (!t)
        return SMG_ERR_NOMEM;
    t->part = part;
    snprintf(t->path, sizeof t->path, "%s", path);
    status = smg_output_open(path, &t->f, diag);
    if (status) {
        free(t);
        return status;
    }
    if (!part)
        fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", t->f);
    *out = t;
    return SMG_OK;
}

int smg_timeline_create(const char *path, struct smg_timeline **out, struct smg_diag *diag)
{
    return create(path, 0, out, diag);
}

int smg_timeline_create_part(const char *path, struct smg_timeline **out, struct smg_diag *diag)
{
    return create(path, 1, out, diag);
}

int smg_timeline_append(struct smg_timeline *t, const char *part, struct smg_diag *diag)
{
    char buffer[16384];
    size_t n;
    FILE *f = fopen(part, "r");
    int bad, first = 1;

    if (!f)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", part, strerror(errno));
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0) {
        if (first && t->any)
            fputc(',', t->f);
        first = 0;
        t->any = 1;
        fwrite(buffer, 1, n, t->f);
    }
    bad = ferror(f);
    fclose(f);
    return bad ? smg_diag_set(diag, SMG_ERR_IO, "%s: %s", part, strerror(EIO)) : SMG_OK;
}

void smg_timeline_synthetic(struct smg_timeline *t, const struct smg_world *w)
{
    snprintf(t->synthetic, sizeof t->synthetic, "%s%s%s", w->synthetic_importance ? "importance " : "",
             w->synthetic_selection ? "selection " : "", w->synthetic_workload ? "workload " : "");
    if (t->synthetic[0])
        t->synthetic[strlen(t->synthetic) - 1] = '\0'; /* the blank behind the last */
}

int smg_timeline_close(struct smg_timeline *t, struct smg_diag *diag)
{
    int status;

    smg_timeline_end_requests(t);
    if (!t->part)
        fprintf(t->f, "\n]%s%s%s}\n", t->synthetic[0] ? ",\"otherData\":{\"synthetic\":\"" : "", t->synthetic,
                t->synthetic[0] ? "\"}" : "");
    status = smg_output_close(t->f, t->path, t->status, diag);
    free(t->track);
    free(t->request);
    free(t);
    return status;
}

/* ---- The observer ---- */

struct recorders {
    struct smg_log_writer *log;
    struct smg_timeline *timeline;
};

static int on_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct recorders *r = arg;

    if (r->timeline)
        smg_timeline_step(r->timeline, instance, e, actions);
    return r->log ? smg_log_step(r->log, instance, e, actions) : SMG_OK;
}

static void on_operation(void *arg, const struct smg_op *op, double start_s, double end_s)
{
    struct recorders *r = arg;

    smg_timeline_operation(r->timeline, op, start_s, end_s);
}

int smg_recorder_observer(struct smg_log_writer *log, struct smg_timeline *timeline, struct smg_observer *out)
{
    struct recorders *r = malloc(sizeof *r);

    memset(out, 0, sizeof *out);
    if (!r)
        return SMG_ERR_NOMEM;
    *r = (struct recorders){log, timeline};
    out->arg = r;
    out->step = on_step;
    out->operation = timeline ? on_operation : NULL;
    return SMG_OK;
}

void smg_recorder_observer_free(struct smg_observer *o)
{
    free(o->arg);
    o->arg = NULL;
}
