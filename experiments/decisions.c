/* decisions.csv: what the agents decided, without when. Read from the logs of a run.
 *
 * Pushed blocks are listed as maximal ranges, and metadata as one row a layer, so that neither the size of a chunk nor the moment
 * a chunk was posted shows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/scheme.h"
#include "core/grid.h"
#include "experiments/files.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

/* In alphabetical order: the file is sorted by name. */
enum decision { ASSIGN, EMIT, FINISH, GRANT, HANDOFF, INDEX, JOIN, METADATA, PUSH, REPLY, SPECULATIVE, SPLIT };

static const char *const decision_names[] = {"assign", "emit",     "finish", "grant", "handoff",     "index",
                                             "join",   "metadata", "push",   "reply", "speculative", "split"};

#define NO_CELL UINT64_MAX

struct row {
    uint32_t instance, request, step, decision;
    uint64_t layer, block_first, blocks, entries_local, entries_remote, bytes; /* NO_CELL: empty */
};

struct rows {
    const struct smg_world *world;
    struct row *row;
    size_t n, cap;
};

static int add(struct rows *rows, const struct row *row)
{
    if (rows->n == rows->cap) {
        size_t cap = rows->cap ? 2 * rows->cap : 1024;
        struct row *grown = realloc(rows->row, cap * sizeof *grown);
        if (!grown)
            return SMG_ERR_NOMEM;
        rows->row = grown;
        rows->cap = cap;
    }
    rows->row[rows->n++] = *row;
    return SMG_OK;
}

static struct row row_of(uint16_t instance, enum decision decision, uint32_t request)
{
    return (struct row){instance, request, 0, decision, NO_CELL, NO_CELL, NO_CELL, NO_CELL, NO_CELL, NO_CELL};
}

/* ---- From steps to rows ---- */

static int add_range(struct rows *rows, uint16_t instance, enum decision decision, const struct smg_item *item)
{
    const struct smg_world *w = rows->world;
    struct row row = row_of(instance, decision, item->request);
    struct smg_grid grid;

    if (item->request >= w->n_requests || item->layer >= w->model.layers)
        return SMG_ERR_PARSE;
    smg_scheme_grid(w, w->requests[item->request].prompt_tokens, &grid);
    if (item->first > grid.blocks || item->count > grid.blocks - item->first)
        return SMG_ERR_PARSE;
    row.layer = item->layer;
    row.block_first = item->first;
    row.blocks = item->count;
    row.bytes = smg_grid_range_bytes(&grid, item->layer, item->first, item->count);
    return add(rows, &row);
}

static int add_write(struct rows *rows, uint16_t instance, const struct smg_action *a, const struct smg_item *items)
{
    struct row row = row_of(instance, METADATA, a->request);
    int status = SMG_OK;

    if (a->purpose == SMG_FOR_METADATA) {
        row.layer = a->layer_lo;
        row.bytes = a->bytes;
        return add(rows, &row);
    }
    for (uint32_t i = 0; i < a->n_items && !status; i++)
        status = add_range(rows, instance, a->purpose == SMG_FOR_PUSH ? PUSH : SPECULATIVE, &items[i]);
    return status;
}

static int add_reply(struct rows *rows, uint16_t instance, const struct smg_action *a)
{
    struct row row = row_of(instance, REPLY, a->request);

    row.step = a->step;
    row.layer = a->layer_lo;
    row.entries_remote = a->entries;
    row.bytes = a->bytes;
    return add(rows, &row);
}

/* Fills the row of a message that is a decision; 0: it is none. */
static int row_of_message(const struct smg_world *w, uint16_t instance, const struct smg_message *m, struct row *row)
{
    *row = row_of(instance, ASSIGN, m->request);
    row->step = m->step;
    switch (m->kind) {
    case SMG_MSG_PREFILL:
        row->blocks = m->u.assign.kr_blocks;
        return 1;
    case SMG_MSG_HANDOFF:
        row->decision = HANDOFF;
        return 1;
    case SMG_MSG_JOINED:
        row->decision = JOIN;
        return 1;
    case SMG_MSG_TOKEN:
        row->decision = EMIT;
        row->step = m->u.token.token;
        return 1;
    case SMG_MSG_INDEX:
        row->decision = INDEX;
        row->layer = m->layer_lo;
        row->entries_remote = m->u.index.entries;
        row->bytes = m->u.index.bytes;
        return 1;
    case SMG_MSG_IDLE:
        row->decision = GRANT;
        row->layer = m->layer_lo;
        row->blocks = m->u.grant.blocks;
        return 1;
    case SMG_MSG_DONE: /* the prefill instance only echoes it */
        row->decision = FINISH;
        return smg_world_is_decode(w, instance);
    default:
        return 0;
    }
}

static int add_action(struct rows *rows, uint16_t instance, const struct smg_action *a, const struct smg_item *items)
{
    struct row row;

    if (a->kind == SMG_ACT_WRITE)
        return add_write(rows, instance, a, items);
    if (a->kind == SMG_ACT_REPLY)
        return add_reply(rows, instance, a);
    if (a->kind == SMG_ACT_SEND && row_of_message(rows->world, instance, &a->msg, &row))
        return add(rows, &row);
    return SMG_OK;
}

static int add_split(struct rows *rows, uint16_t instance, const struct smg_event *e)
{
    struct row row = row_of(instance, SPLIT, e->request);

    row.step = e->step;
    row.layer = e->layer_lo;
    row.entries_local = e->entries_local;
    row.entries_remote = e->entries_remote;
    return add(rows, &row);
}

static int add_step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct rows *rows = arg;
    int status = e->kind == SMG_EV_SPLIT_DONE ? add_split(rows, instance, e) : SMG_OK;

    for (size_t i = 0; i < actions->n && !status; i++) {
        const struct smg_action *a = &actions->action[i];
        if (a->item_first > actions->n_items || a->n_items > actions->n_items - a->item_first)
            return SMG_ERR_PARSE;
        status = add_action(rows, instance, a, a->n_items ? actions->items + a->item_first : NULL);
    }
    return status;
}

/* ---- Order ---- */

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_columns(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const uint64_t left[] = {x->instance,    x->request, x->step,  x->layer,         x->decision,
                             x->block_first, x->blocks,  x->bytes, x->entries_local, x->entries_remote};
    const uint64_t right[] = {y->instance,    y->request, y->step,  y->layer,         y->decision,
                              y->block_first, y->blocks,  y->bytes, y->entries_local, y->entries_remote};
    int c = 0;

    for (size_t i = 0; i < sizeof left / sizeof left[0] && !c; i++)
        c = order(left[i] + 1, right[i] + 1); /* empty cells come first */
    return c;
}

/* Row b continues row a of a layer: an adjacent range of pushed blocks, or a further piece of metadata. */
static int continues(const struct row *a, const struct row *b)
{
    if (a->instance != b->instance || a->request != b->request || a->layer != b->layer || a->decision != b->decision)
        return 0;
    return b->decision == METADATA || (b->decision == PUSH && a->block_first + a->blocks == b->block_first);
}

static void merge(struct rows *rows)
{
    size_t kept = 0;

    for (size_t i = 0; i < rows->n; i++) {
        struct row *last = kept ? &rows->row[kept - 1] : NULL;
        if (!last || !continues(last, &rows->row[i])) {
            rows->row[kept++] = rows->row[i];
            continue;
        }
        last->bytes += rows->row[i].bytes;
        if (last->decision == PUSH)
            last->blocks += rows->row[i].blocks;
    }
    rows->n = kept;
}

/* ---- The file ---- */

static void cell(FILE *f, uint64_t x)
{
    if (x == NO_CELL)
        fputc(',', f);
    else
        fprintf(f, ",%" PRIu64, x);
}

static int write_rows(const struct rows *rows, const char *path, struct smg_diag *diag)
{
    FILE *f = NULL;
    uint64_t seq = 0;
    int status = smg_output_open(path, &f, diag);

    if (status)
        return status;
    fputs("seq,instance,action,request,step,layer,block_first,blocks,entries_local,entries_remote,bytes\n", f);
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->row[i];
        seq = i && r->instance == rows->row[i - 1].instance ? seq + 1 : 0;
        fprintf(f, "%" PRIu64 ",%" PRIu32 ",%s,%" PRIu32 ",%" PRIu32, seq, r->instance, decision_names[r->decision], r->request,
                r->step);
        cell(f, r->layer);
        cell(f, r->block_first);
        cell(f, r->blocks);
        cell(f, r->entries_local);
        cell(f, r->entries_remote);
        cell(f, r->bytes);
        fputc('\n', f);
    }
    return smg_output_close(f, path, SMG_OK, diag);
}

int smg_write_decisions_csv(const struct smg_world *w, const char *events_path, const char *actions_path, const char *path,
                            struct smg_diag *diag)
{
    struct rows rows = {w, NULL, 0, 0};
    int status = smg_log_each(events_path, actions_path, add_step, &rows, diag);

    if (!status && rows.n) {
        qsort(rows.row, rows.n, sizeof *rows.row, by_columns);
        merge(&rows);
    }
    if (!status)
        status = write_rows(&rows, path, diag);
    free(rows.row);
    return status;
}
