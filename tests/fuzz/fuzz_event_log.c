/* Event and action logs: damaged as they are, and with the right magic, sizes, end marks and checksums around any steps. What was
 * read goes on to the table of decisions.
 *
 * The first byte says what is wrong with the frame, the next two how many of the bytes behind them are events. */
#include <stdlib.h>
#include <string.h>

#include "experiments/run_priv.h"
#include "tests/fuzz/world.h"
#include "traces/importance_bytes.h"

enum { NO_EVENT_MAGIC = 1, NO_ACTION_MAGIC = 2, NO_EVENT_SIZE = 4, NO_EVENT_END = 8, NO_ACTION_END = 16, NO_CHECKSUM = 32 };

struct text {
    char *data;
    size_t bytes;
};

static void put(struct text *t, const void *data, size_t bytes)
{
    if (bytes)
        memcpy(t->data + t->bytes, data, bytes);
    t->bytes += bytes;
}

/* One of the two files. */
static struct text frame(const char *magic, uint32_t size, const void *body, size_t bytes, const void *end, size_t end_bytes,
                         uint64_t spoil)
{
    struct text t = {malloc(8 + sizeof size + bytes + end_bytes + 8), 0};
    uint64_t hash = smg_fnv1a64(SMG_FNV1A64_START, body, bytes) + spoil;

    fuzz_must(t.data);
    put(&t, magic, 8);
    put(&t, &size, sizeof size);
    put(&t, body, bytes);
    if (end_bytes) {
        put(&t, end, end_bytes);
        put(&t, &hash, sizeof hash);
    }
    return t;
}

struct seen {
    uint64_t steps;
};

static int step(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions)
{
    struct seen *seen = arg;

    (void)instance;
    fuzz_must(smg_event_name(e->kind) && actions->n <= actions->cap && actions->n_items <= actions->cap_items);
    for (size_t i = 0; i < actions->n; i++)
        fuzz_must(smg_action_name(actions->action[i].kind) && smg_purpose_name(actions->action[i].purpose));
    seen->steps++;
    return SMG_OK;
}

static void read_files(const char *events, const char *actions)
{
    struct smg_diag diag = {""};
    struct seen seen = {0};
    int status = smg_log_each(events, actions, step, &seen, &diag), again;

    fuzz_told(status, &diag);
    again = smg_write_decisions_csv(fuzz_world(), events, actions, "/dev/null", &diag);
    fuzz_told(again, &diag);
    fuzz_must(!status || again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint16_t end_of_events = UINT16_MAX;
    static const uint32_t end_of_actions[2] = {UINT32_MAX, UINT32_MAX};
    struct text events, actions;
    size_t n;
    int spoil;

    if (bytes < 3)
        return 0;
    spoil = data[0];
    n = (size_t)data[1] | (size_t)data[2] << 8;
    data += 3;
    bytes -= 3;
    n = n < bytes ? n : bytes;
    events = frame(spoil & NO_EVENT_MAGIC ? "SMGEVT00" : "SMGEVT02", sizeof(struct smg_event) + !!(spoil & NO_EVENT_SIZE), data,
                   n, &end_of_events, spoil & NO_EVENT_END ? 0 : sizeof end_of_events, 0);
    actions = frame(spoil & NO_ACTION_MAGIC ? "SMGACT00" : "SMGACT02", sizeof(struct smg_action), data + n, bytes - n,
                    end_of_actions, spoil & NO_ACTION_END ? 0 : sizeof end_of_actions, !!(spoil & NO_CHECKSUM));
    read_files(fuzz_file(0, events.data, events.bytes), fuzz_file(1, actions.data, actions.bytes));
    free(events.data);
    free(actions.data);
    return 0;
}
