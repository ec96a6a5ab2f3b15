#include "experiments/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "experiments/files.h"
#include "traces/importance_bytes.h"

static const char event_magic[8] = {'S', 'M', 'G', 'E', 'V', 'T', '0', '2'};
static const char action_magic[8] = {'S', 'M', 'G', 'A', 'C', 'T', '0', '2'};

/* What stands where the next step would begin: an instance number and counts that no step has. */
static const uint16_t end_of_events = UINT16_MAX;
static const uint32_t end_of_actions[2] = {UINT32_MAX, UINT32_MAX};

static void say(struct smg_diag *diag, const char *path, const char *what)
{
    if (diag)
        snprintf(diag->text, sizeof diag->text, "%s: %s", path, what);
}

/* ---- Writing ---- */

static FILE *create(const char *path, const char magic[8], uint32_t size, struct smg_diag *diag)
{
    FILE *f = fopen(path, "wb");

    if (f && fwrite(magic, 8, 1, f) == 1 && fwrite(&size, sizeof size, 1, f) == 1)
        return f;
    say(diag, path, strerror(errno));
    if (f)
        fclose(f);
    return NULL;
}

int smg_log_create(const char *events_path, const char *actions_path, struct smg_log_writer *out, struct smg_diag *diag)
{
    struct smg_log_writer w = {{NULL, SMG_FNV1A64_START, 0}, {NULL, SMG_FNV1A64_START, 0}};

    w.events.f = create(events_path, event_magic, sizeof(struct smg_event), diag);
    if (!w.events.f)
        return SMG_ERR_IO;
    w.actions.f = create(actions_path, action_magic, sizeof(struct smg_action), diag);
    if (!w.actions.f) {
        fclose(w.events.f);
        return SMG_ERR_IO;
    }
    *out = w;
    return SMG_OK;
}

/* Bytes up to the last one that is not zero. */
static uint16_t significant(const void *data, size_t bytes)
{
    const unsigned char *p = data;

    while (bytes && !p[bytes - 1])
        bytes--;
    return (uint16_t)bytes;
}

static int put(struct smg_log_file *f, const void *data, size_t bytes)
{
    f->hash = smg_fnv1a64(f->hash, data, bytes);
    if (!bytes || fwrite(data, bytes, 1, f->f) == 1)
        return SMG_OK;
    if (!f->error)
        f->error = errno;
    return SMG_ERR_IO;
}

static int put_trimmed(struct smg_log_file *f, const void *data, size_t bytes)
{
    uint16_t n = significant(data, bytes);
    int status = put(f, &n, sizeof n);

    return status ? status : put(f, data, n);
}

int smg_log_step(void *writer, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct smg_log_writer *w = writer;
    uint32_t counts[2] = {(uint32_t)actions->n, (uint32_t)actions->n_items};
    int status = put(&w->events, &instance, sizeof instance);

    if (!status)
        status = put_trimmed(&w->events, e, sizeof *e);
    if (!status)
        status = put(&w->actions, counts, sizeof counts);
    for (size_t i = 0; i < actions->n && !status; i++)
        status = put_trimmed(&w->actions, &actions->action[i], sizeof actions->action[i]);
    return status ? status : put(&w->actions, actions->items, actions->n_items * sizeof *actions->items);
}

/* The end mark and the checksum: a log without them was cut short. Returns an errno. */
static int close_file(struct smg_log_file *f, const void *mark, size_t mark_bytes)
{
    uint64_t hash = f->hash;

    if (!f->f)
        return 0;
    put(f, mark, mark_bytes);
    put(f, &hash, sizeof hash);
    if (fclose(f->f) && !f->error)
        f->error = errno;
    f->f = NULL;
    return f->error;
}

int smg_log_close(struct smg_log_writer *w, struct smg_diag *diag)
{
    int events = close_file(&w->events, &end_of_events, sizeof end_of_events),
        actions = close_file(&w->actions, end_of_actions, sizeof end_of_actions);

    if (!events && !actions)
        return SMG_OK;
    say(diag, "the event log cannot be written", strerror(events ? events : actions));
    return SMG_ERR_IO;
}

/* ---- Reading ---- */

static FILE *open_checked(const char *path, const char magic[8], uint32_t size, struct smg_diag *diag)
{
    char found[8];
    uint32_t found_size;
    FILE *f;

    if (smg_file_regular(path, diag))
        return NULL;
    f = fopen(path, "rb");
    if (!f) {
        say(diag, path, strerror(errno));
        return NULL;
    }
    if (fread(found, 8, 1, f) == 1 && fread(&found_size, sizeof found_size, 1, f) == 1 && !memcmp(found, magic, 8) &&
        found_size == size)
        return f;
    say(diag, path, "not a log of this version");
    fclose(f);
    return NULL;
}

int smg_log_open(const char *events_path, const char *actions_path, struct smg_log_reader *out, struct smg_diag *diag)
{
    struct smg_log_reader r = {{NULL, SMG_FNV1A64_START, 0}, {NULL, SMG_FNV1A64_START, 0}, 0};

    r.events.f = open_checked(events_path, event_magic, sizeof(struct smg_event), diag);
    if (!r.events.f)
        return SMG_ERR_PARSE;
    r.actions.f = open_checked(actions_path, action_magic, sizeof(struct smg_action), diag);
    if (!r.actions.f) {
        fclose(r.events.f);
        return SMG_ERR_PARSE;
    }
    *out = r;
    return SMG_OK;
}

void smg_log_reader_close(struct smg_log_reader *r)
{
    if (r->events.f)
        fclose(r->events.f);
    if (r->actions.f)
        fclose(r->actions.f);
    r->events.f = r->actions.f = NULL;
}

/* The checksum at the end, over all between header and mark. f stands behind the header. */
static int check_whole(FILE *f, const char *path, const void *mark, size_t mark_bytes, struct smg_diag *diag)
{
    unsigned char buffer[65536], end[16];
    uint64_t hash = SMG_FNV1A64_START, recorded;
    size_t tail = mark_bytes + sizeof recorded, n = 1;
    long first = ftell(f), left;

    if (first < 0 || fseek(f, 0, SEEK_END) || (left = ftell(f)) < 0 || fseek(f, first, SEEK_SET)) {
        say(diag, path, strerror(errno));
        return SMG_ERR_IO;
    }
    for (left -= first + (long)tail; left > 0 && n; left -= (long)n) {
        n = fread(buffer, 1, left < (long)sizeof buffer ? (size_t)left : sizeof buffer, f);
        hash = smg_fnv1a64(hash, buffer, n);
    }
    if (left || fread(end, tail, 1, f) != 1 || memcmp(end, mark, mark_bytes)) {
        say(diag, path, "cut short or damaged: it does not end as a log does");
        return SMG_ERR_PARSE;
    }
    memcpy(&recorded, end + mark_bytes, sizeof recorded);
    if (recorded == hash)
        return SMG_OK;
    say(diag, path, "damaged: its bytes do not have the checksum at its end");
    return SMG_ERR_PARSE;
}

int smg_log_check(const char *events_path, const char *actions_path, struct smg_diag *diag)
{
    struct smg_log_reader r;
    int status = smg_log_open(events_path, actions_path, &r, diag);

    if (status)
        return status;
    status = check_whole(r.events.f, events_path, &end_of_events, sizeof end_of_events, diag);
    if (!status)
        status = check_whole(r.actions.f, actions_path, end_of_actions, sizeof end_of_actions, diag);
    smg_log_reader_close(&r);
    return status;
}

static int get(struct smg_log_file *f, void *data, size_t bytes)
{
    if (bytes && fread(data, bytes, 1, f->f) != 1)
        return SMG_ERR_PARSE;
    f->hash = smg_fnv1a64(f->hash, data, bytes);
    return SMG_OK;
}

static int get_trimmed(struct smg_log_file *f, void *data, size_t bytes)
{
    uint16_t n;
    int status = get(f, &n, sizeof n);

    memset(data, 0, bytes);
    if (!status && n > bytes)
        status = SMG_ERR_PARSE;
    return status ? status : get(f, data, n);
}

/* The actions are as recorded; adding items here must not change the last one. */
static int get_items(struct smg_log_reader *r, struct smg_actions *actions, uint32_t n)
{
    struct smg_action *last = actions->n ? &actions->action[actions->n - 1] : NULL;
    uint32_t n_items = last ? last->n_items : 0, item_first = last ? last->item_first : 0;
    int status = n && !actions->n ? SMG_ERR_PARSE : SMG_OK;

    for (uint32_t i = 0; !status && i < n; i++) {
        struct smg_item item;
        status = get(&r->actions, &item, sizeof item);
        if (!status)
            status = smg_actions_item(actions, &item);
    }
    if (last) {
        last->n_items = n_items;
        last->item_first = item_first;
    }
    return status;
}

static int get_actions(struct smg_log_reader *r, struct smg_actions *actions)
{
    uint32_t counts[2];
    int status = get(&r->actions, counts, sizeof counts);

    actions->n = actions->n_items = 0;
    for (uint32_t i = 0; !status && i < counts[0]; i++) {
        struct smg_action *a = smg_actions_add(actions, SMG_ACT_NONE);
        status = a ? get_trimmed(&r->actions, a, sizeof *a) : SMG_ERR_NOMEM;
    }
    return status ? status : get_items(r, actions, counts[1]);
}

/* After an end mark: the checksum, and then nothing. */
static int intact(struct smg_log_file *f, uint64_t computed)
{
    uint64_t recorded;

    return fread(&recorded, sizeof recorded, 1, f->f) == 1 && recorded == computed && fgetc(f->f) == EOF;
}

static int at_end(struct smg_log_reader *r)
{
    uint64_t events = r->events.hash, actions = r->actions.hash;
    uint32_t mark[2];

    return fread(mark, sizeof mark, 1, r->actions.f) == 1 && !memcmp(mark, end_of_actions, sizeof mark) &&
           intact(&r->events, events) && intact(&r->actions, actions);
}

int smg_log_next(struct smg_log_reader *r, uint16_t *instance, struct smg_event *e, struct smg_actions *actions, int *more)
{
    int status;

    if (fread(instance, sizeof *instance, 1, r->events.f) != 1)
        return SMG_ERR_PARSE;
    *more = *instance != end_of_events;
    if (!*more)
        return at_end(r) ? SMG_OK : SMG_ERR_PARSE;
    r->events.hash = smg_fnv1a64(r->events.hash, instance, sizeof *instance);
    status = get_trimmed(&r->events, e, sizeof *e);
    if (!status)
        status = get_actions(r, actions);
    r->steps++;
    return status;
}

int smg_log_each(const char *events_path, const char *actions_path, smg_log_step_fn step, void *arg, struct smg_diag *diag)
{
    struct smg_log_reader r;
    struct smg_actions actions = {0};
    struct smg_event e;
    uint16_t instance;
    int more = 1, status = smg_log_open(events_path, actions_path, &r, diag);

    if (status)
        return status;
    while (!status && more) {
        status = smg_log_next(&r, &instance, &e, &actions, &more);
        if (!status && more)
            status = step(arg, instance, &e, &actions);
    }
    if (status && diag)
        snprintf(diag->text, sizeof diag->text, "%.400s: step %" PRIu64 ": %s", events_path, r.steps, smg_status_string(status));
    smg_log_reader_close(&r);
    smg_actions_free(&actions);
    return status;
}

int smg_log_append(struct smg_log_writer *w, const char *events_path, const char *actions_path, struct smg_diag *diag)
{
    return smg_log_each(events_path, actions_path, smg_log_step, w, diag);
}
