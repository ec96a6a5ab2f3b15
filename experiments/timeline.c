#include "experiments/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct smg_timeline {
    FILE *f;
    int any;
};

static const char *lane_name(uint16_t lane)
{
    static const char *const names[] = {"none", "GPU main", "GPU select", "H2D", "D2H", "CPU gather", "push", "reply", "control"};

    return lane < SMG_LANES ? names[lane] : "unknown";
}

int smg_timeline_create(const char *path, struct smg_timeline **out, struct smg_diag *diag)
{
    struct smg_timeline *t = calloc(1, sizeof *t);

    if (!t)
        return SMG_ERR_NOMEM;
    t->f = fopen(path, "w");
    if (!t->f || fprintf(t->f, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") < 0) {
        snprintf(diag->text, sizeof diag->text, "%s: %s", path, strerror(errno));
        if (t->f)
            fclose(t->f);
        free(t);
        return SMG_ERR_IO;
    }
    *out = t;
    return SMG_OK;
}

void smg_timeline_operation(struct smg_timeline *t, const struct smg_op *op, double start_s, double end_s)
{
    const struct smg_action *a = &op->action;
    unsigned track = a->lane * 1000u + (a->lane >= SMG_LANE_PUSH ? a->peer : 0u);
    const char *what = a->purpose ? smg_purpose_name(a->purpose) : smg_message_name(a->msg.kind);

    fprintf(t->f, "%s\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,",
            t->any ? "," : "", what, lane_name(a->lane), op->instance, track, start_s * 1e6, (end_s - start_s) * 1e6);
    fprintf(t->f, "\"args\":{\"request\":%u,\"layer\":%u,\"bytes\":%llu}}", a->request, a->layer_lo,
            (unsigned long long)a->bytes);
    t->any = 1;
}

int smg_timeline_close(struct smg_timeline *t, struct smg_diag *diag)
{
    int bad = fprintf(t->f, "\n]}\n") < 0;

    bad |= ferror(t->f);
    bad |= fclose(t->f);
    free(t);
    if (!bad)
        return SMG_OK;
    snprintf(diag->text, sizeof diag->text, "timeline.json: %s", strerror(errno));
    return SMG_ERR_IO;
}

struct recorders {
    struct smg_log_writer *log;
    struct smg_timeline *timeline;
};

static int on_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct recorders *r = arg;

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
