/* smartgen replay: the recorded events through fresh agents; the same actions must come out, byte for byte. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/files.h"
#include "experiments/run.h"
#include "traces/importance_bytes.h"
#include "traces/scenario.h"
#include "traces/text.h"
#include "traces/world.h"

enum { INPUT_BYTES_MAX = 1 << 30 };

struct replay {
    struct smg_world world;
    uint32_t instances;
    struct smg_agent **agent; /* [instances] */
    uint64_t *steps;          /* [instances] compared so far */
    struct smg_log_reader log;
    struct smg_actions recorded, now;
};

/* An input file that is not what it was: said before the replay fails for a reason that nobody would guess. */
static int check_input(const json_t *input, struct smg_diag *diag)
{
    const char *name = json_string_value(json_object_get(input, "name")),
               *then = json_string_value(json_object_get(input, "fnv1a64"));
    const char *key = json_string_value(json_object_get(input, "input"));
    char now[17], *data = NULL;
    struct smg_diag unread;
    size_t bytes = 0;
    int same;

    if (!name || !then || !key || !strchr(name, '/') || !strcmp(key, "scenario"))
        return SMG_OK; /* built-in names follow the program; the scenario is in run.json itself */
    if (smg_file_read(name, INPUT_BYTES_MAX, &data, &bytes, &unread))
        return SMG_OK; /* a missing file is named when it is needed */
    snprintf(now, sizeof now, "%016" PRIx64, smg_fnv1a64(SMG_FNV1A64_START, data, bytes));
    free(data);
    same = strcmp(now, then) == 0;
    if (same)
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_VERIFY, "%s: %s has changed since the run was made", name, key);
}

static int check_inputs(const json_t *root, struct smg_diag *diag)
{
    const json_t *input;
    size_t i;
    int status = SMG_OK;

    json_array_foreach(json_object_get(root, "inputs"), i, input)
        if (!status)
            status = check_input(input, diag);
    return status;
}

/* A message about a key is about run.json; others begin with the file that they are about. */
static int name_file(const char *path, int status, const struct smg_diag *found, struct smg_diag *diag)
{
    if (!status)
        return SMG_OK;
    if (!found->text[0])
        return smg_diag_set(diag, status, "%s: %s", path, smg_status_string(status));
    if (!strncmp(found->text, "key '", 5) || !strncmp(found->text, "scenario: ", 10))
        return smg_diag_set(diag, status, "%s: %s", path, found->text);
    return smg_diag_set(diag, status, "%s", found->text);
}

static int load_world(const char *dir, struct smg_world *out, struct smg_diag *diag)
{
    struct smg_scenario scenario;
    struct smg_diag found = {""};
    char path[SMG_PATH_MAX];
    json_t *root = NULL;
    int status = smg_path_join(dir, "run.json", path);

    if (status)
        return smg_diag_set(diag, status, "%.100s...: name is too long", dir);
    status = smg_file_regular(path, &found);
    if (!status)
        status = smg_file_json(path, &root, &found);
    if (!status)
        status = smg_scenario_from_json(json_object_get(root, "scenario"), &scenario, &found);
    if (!status)
        status = check_inputs(root, &found);
    if (!status)
        status = smg_world_load(&scenario, out, &found);
    json_decref(root);
    return name_file(path, status, &found, diag);
}

static int create_agents(struct replay *r)
{
    int status = SMG_OK;

    r->instances = smg_world_instances(&r->world);
    r->agent = calloc(r->instances, sizeof *r->agent);
    r->steps = calloc(r->instances, sizeof *r->steps);
    if (!r->agent || !r->steps)
        return SMG_ERR_NOMEM;
    for (uint32_t i = 0; i < r->instances && !status; i++)
        status = smg_agent_create(&r->world, (uint16_t)i, &r->agent[i]);
    return status;
}

static int open_log(struct replay *r, const char *dir, struct smg_diag *diag)
{
    char events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    int status = smg_path_join(dir, "events.bin", events);

    if (!status)
        status = smg_path_join(dir, "actions.bin", actions);
    if (status)
        return smg_diag_set(diag, status, "%s: name is too long", dir);
    if (access(events, F_OK) && access(actions, F_OK))
        return smg_diag_set(diag, SMG_ERR_NOT_FOUND,
                            "%s: the run has no event log: it broke off, or records.events was off", dir);
    status = smg_log_check(events, actions, diag);
    return status ? status : smg_log_open(events, actions, &r->log, diag);
}

/* Index of the first action that differs; the longer side's next one when all that both have are equal; n: equal. */
static size_t first_difference(const struct smg_actions *a, const struct smg_actions *b)
{
    size_t n = a->n < b->n ? a->n : b->n;

    for (size_t i = 0; i < n; i++)
        if (memcmp(&a->action[i], &b->action[i], sizeof a->action[i]))
            return i;
    return n;
}

static int same(const struct smg_actions *a, const struct smg_actions *b)
{
    return a->n == b->n && a->n_items == b->n_items && first_difference(a, b) == a->n &&
           (!a->n_items || !memcmp(a->items, b->items, a->n_items * sizeof *a->items));
}

static const char *name_at(const struct smg_actions *a, size_t i)
{
    return i < a->n ? smg_action_name(a->action[i].kind) : "nothing";
}

static int differ(const struct replay *r, uint16_t instance, const struct smg_event *e, struct smg_diag *diag)
{
    size_t at = first_difference(&r->recorded, &r->now);

    if (r->recorded.n == r->now.n && at == r->now.n)
        return smg_diag_set(diag, SMG_ERR_VERIFY, "instance %u, step %" PRIu64 " (%s): the block ranges of its actions differ",
                            instance, r->steps[instance], smg_event_name(e->kind));
    return smg_diag_set(diag, SMG_ERR_VERIFY, "instance %u, step %" PRIu64 " (%s): action %zu: recorded %s, now %s%s", instance,
                        r->steps[instance], smg_event_name(e->kind), at, name_at(&r->recorded, at), name_at(&r->now, at),
                        r->recorded.n != r->now.n ? "" : " with other fields");
}

static int compare_step(struct replay *r, uint16_t instance, const struct smg_event *e, struct smg_diag *diag)
{
    int status;

    if (instance >= r->instances)
        return smg_diag_set(diag, SMG_ERR_PARSE, "step %" PRIu64 ": instance %u of %" PRIu32, r->log.steps, instance,
                            r->instances);
    status = smg_agent_step(r->agent[instance], e, &r->now);
    if (status)
        return smg_diag_set(diag, SMG_ERR_VERIFY, "instance %u, step %" PRIu64 " (%s): %s", instance, r->steps[instance],
                            smg_event_name(e->kind), smg_status_string(status));
    if (!same(&r->recorded, &r->now))
        return differ(r, instance, e, diag);
    r->steps[instance]++;
    return SMG_OK;
}

static int compare_all(struct replay *r, uint64_t *compared, struct smg_diag *diag)
{
    struct smg_event e;
    uint16_t instance = 0;
    int more = 1, status = SMG_OK;

    while (!status) {
        status = smg_log_next(&r->log, &instance, &e, &r->recorded, &more);
        if (status)
            return smg_diag_set(diag, status, "step %" PRIu64 " of events.bin and actions.bin: %s", r->log.steps,
                                smg_status_string(status));
        if (!more)
            break;
        status = compare_step(r, instance, &e, diag);
        *compared += !status;
    }
    return status;
}

static void replay_free(struct replay *r)
{
    for (uint32_t i = 0; r->agent && i < r->instances; i++)
        smg_agent_destroy(r->agent[i]);
    free(r->agent);
    free(r->steps);
    smg_actions_free(&r->recorded);
    smg_actions_free(&r->now);
    smg_world_free(&r->world);
}

int smg_replay(const char *dir, uint64_t *steps_out, struct smg_diag *diag)
{
    struct smg_diag found = {""};
    struct replay r = {0};
    uint64_t compared = 0;
    int status = load_world(dir, &r.world, diag);

    if (status)
        return status;
    status = create_agents(&r);
    if (status)
        smg_diag_set(diag, status, "%s: %s", dir, smg_status_string(status));
    if (!status)
        status = open_log(&r, dir, diag);
    if (!status) {
        status = compare_all(&r, &compared, &found);
        smg_log_reader_close(&r.log);
        if (status)
            smg_diag_set(diag, status, "%s: %s", dir, found.text);
    }
    replay_free(&r);
    if (!status)
        *steps_out = compared;
    return status;
}
