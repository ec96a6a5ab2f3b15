/* The record folder of a finished run, file by file. */
#include "experiments/run_priv.h"

#include <string.h>

#include "traces/text.h"

static int write_decisions(const struct smg_outdir *o, const struct smg_world *w, const char *path, struct smg_diag *diag)
{
    char events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    int status = smg_outdir_file(o, "events.bin", events);

    if (!status)
        status = smg_outdir_file(o, "actions.bin", actions);
    if (status)
        return smg_diag_set(diag, status, "%s: name is too long", o->temporary);
    return smg_write_decisions_csv(w, events, actions, path, diag);
}

enum part { REQUESTS, TOKENS, DECISIONS, SUMMARY, RUN };

static int write_part(const struct smg_outdir *o, const struct smg_run *run, enum part part, const struct smg_law *laws,
                      size_t n_laws, struct smg_diag *diag)
{
    static const char *const name[] = {"requests.csv", "tokens.csv", "decisions.csv", "summary.json", "run.json"};
    char path[SMG_PATH_MAX];
    int status = smg_outdir_file(o, name[part], path);

    if (status)
        return smg_diag_set(diag, status, "%s: name is too long", o->temporary);
    switch (part) {
    case REQUESTS:
        return smg_write_requests_csv(run, path, diag);
    case TOKENS:
        return run->world->scenario.records.tokens ? smg_write_tokens_csv(run, path, diag) : SMG_OK;
    case DECISIONS:
        return run->world->scenario.records.decisions ? write_decisions(o, run->world, path, diag) : SMG_OK;
    case SUMMARY:
        return smg_write_summary_json(run, laws, n_laws, path, diag);
    case RUN:
        return smg_write_run_json(run, path, diag);
    }
    return SMG_OK;
}

static int broken_law(const struct smg_law *laws, size_t n, struct smg_diag *diag)
{
    for (size_t i = 0; i < n; i++)
        if (!laws[i].holds)
            return smg_diag_set(diag, SMG_ERR_CONSERVATION, "conservation: %s: %.9g against %.9g", laws[i].name, laws[i].left,
                                laws[i].right);
    return SMG_ERR_CONSERVATION;
}

int smg_run_write(const struct smg_outdir *o, const struct smg_run *run, struct smg_diag *diag)
{
    struct smg_law laws[SMG_LAWS];
    size_t n_laws = 0;
    int sound = smg_conservation_check(run->records, run->stats, laws, &n_laws), status = SMG_OK;

    if (sound && sound != SMG_ERR_CONSERVATION)
        return smg_diag_set(diag, sound, "conservation: %s", smg_status_string(sound));
    for (int part = REQUESTS; part <= RUN && !status; part++)
        status = write_part(o, run, (enum part)part, laws, n_laws, diag);
    smg_outdir_explain(o, diag);
    if (status)
        return status;
    return sound ? broken_law(laws, n_laws, diag) : SMG_OK;
}
