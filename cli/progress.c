#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LINE_EVERY_S  0.25
#define PLAIN_EVERY_S 1.0
#define TEXT_MAX      256

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the terminal now: windows change. */
static int columns(void)
{
    struct winsize w;
    const char *text = getenv("COLUMNS");
    int n = 0;

    if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &w))
        n = w.ws_col;
    if (n <= 0 && text)
        n = atoi(text);
    return n > 1 ? n < TEXT_MAX ? n : TEXT_MAX - 1 : 80;
}

static enum smg_progress_mode mode_of(const struct smg_args *a)
{
    if (a->quiet)
        return SMG_PROGRESS_OFF;
    if (isatty(STDERR_FILENO))
        return SMG_PROGRESS_LINE;
    return a->progress ? SMG_PROGRESS_PLAIN : SMG_PROGRESS_OFF;
}

/* "45 s", "3 min 20 s", "2 h 5 min". */
static void duration(double s, char *out, size_t bytes)
{
    unsigned long n = s < 1e7 ? (unsigned long)(s + 0.5) : 10000000;

    if (n < 100)
        snprintf(out, bytes, "%lu s", n);
    else if (n < 6000)
        snprintf(out, bytes, "%lu min %lu s", n / 60, n % 60);
    else
        snprintf(out, bytes, "%lu h %lu min", n / 3600, n / 60 % 60);
}

/* What is left, if the rest goes as what is done went, stands before the counts: a narrow terminal cuts the end off. */
static void describe(const struct smg_progress *p, double now, int last, char *out, size_t bytes)
{
    double share = p->total ? (double)p->done / (double)p->total : 0, elapsed = now - p->start_s;
    char requests[64] = "", time[48] = "", span[32];

    if (last) {
        duration(elapsed, span, sizeof span);
        snprintf(time, sizeof time, ", took %s", span);
    } else if (share > 0 && share < 1) {
        duration(elapsed * (1 - share) / share, span, sizeof span);
        snprintf(time, sizeof time, ", %s left", span);
    }
    if (p->world)
        snprintf(requests, sizeof requests, ", %u of %u requests", p->finished, p->world->n_requests);
    snprintf(out, bytes, "%s: %3.0f %%%s, %llu of %llu %s%s", p->command, 100 * share, time, (unsigned long long)p->done,
             (unsigned long long)p->total, p->unit, requests);
}

/* The line is padded over what stood there; the last column stays free, so that no terminal wraps. */
static void show(struct smg_progress *p, double now, int last)
{
    char text[TEXT_MAX];
    int width;

    describe(p, now, last, text, sizeof text);
    p->shown_s = now;
    if (p->mode == SMG_PROGRESS_PLAIN) {
        fprintf(stderr, "%s\n", text);
        return;
    }
    width = (int)strlen(text);
    if (width > columns() - 1)
        width = columns() - 1;
    fprintf(stderr, "\r%.*s%*s", width, text, p->width > width ? p->width - width : 0, "");
    fflush(stderr);
    p->width = width;
}

void smg_progress_begin(struct smg_progress *p, const struct smg_args *a, const char *command, const char *unit, uint64_t total)
{
    memset(p, 0, sizeof *p);
    p->mode = mode_of(a);
    p->command = command;
    p->unit = unit;
    p->total = total;
    if (p->mode == SMG_PROGRESS_OFF)
        return;
    p->start_s = p->shown_s = now_s();
    if (total)
        show(p, p->start_s, 0);
}

void smg_progress_at(struct smg_progress *p, uint64_t done)
{
    double now;

    p->done = done;
    if (p->mode == SMG_PROGRESS_OFF)
        return;
    now = now_s();
    if (now - p->shown_s >= (p->mode == SMG_PROGRESS_LINE ? LINE_EVERY_S : PLAIN_EVERY_S) && done < p->total)
        show(p, now, 0);
}

void smg_progress_end(struct smg_progress *p)
{
    if (p->mode == SMG_PROGRESS_LINE && p->width)
        fprintf(stderr, "\r%*s\r", p->width, "");
    if (p->mode == SMG_PROGRESS_PLAIN)
        show(p, now_s(), 1);
    fflush(stderr);
    p->mode = SMG_PROGRESS_OFF;
}

/* ---- Callbacks ---- */

void smg_progress_points(void *arg, size_t done, size_t total)
{
    struct smg_progress *p = arg;
    int first = !p->total;

    p->total = total;
    if (first)
        p->shown_s = 0; /* show it now */
    smg_progress_at(p, done);
}

void smg_progress_requests(void *arg, uint32_t done, uint32_t all)
{
    smg_progress_points(arg, done, all);
}

/* ---- A run ---- */

static int on_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct smg_progress *p = arg;

    if (!instance && e->kind == SMG_EV_MSG && e->msg.kind == SMG_MSG_TOKEN && e->msg.request < p->world->n_requests) {
        p->finished += e->msg.u.token.token == p->world->requests[e->msg.request].output_tokens;
        smg_progress_at(p, p->done + 1);
    }
    return p->inner.step ? p->inner.step(p->inner.arg, instance, e, actions) : SMG_OK;
}

static void on_operation(void *arg, const struct smg_op *op, double start_s, double end_s)
{
    struct smg_progress *p = arg;

    p->inner.operation(p->inner.arg, op, start_s, end_s);
}

void smg_progress_observe(struct smg_progress *p, const struct smg_args *a, const char *command, const struct smg_world *w,
                          struct smg_observer *observer)
{
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < w->n_requests; i++)
        tokens += w->requests[i].output_tokens;
    smg_progress_begin(p, a, command, "tokens", tokens);
    if (p->mode == SMG_PROGRESS_OFF)
        return;
    p->world = w;
    p->inner = *observer;
    observer->arg = p;
    observer->step = on_step;
    observer->operation = p->inner.operation ? on_operation : NULL;
}
