/* smartgen sim: simulate, write the record folder, say what came out. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/outcome.h"
#include "cli/progress.h"
#include "sim/driver.h"
#include "traces/scenario.h"
#include "traces/world.h"

static int simulate(const struct smg_args *a, const struct smg_world *w, const struct smg_engine_type *engine)
{
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    struct smg_diag diag = {""};
    struct smg_run_folder rec;
    struct smg_observer observer = {NULL, NULL, NULL}, guarded;
    struct smg_interrupt_guard guard;
    struct smg_progress progress;
    struct smg_run run = {w, NULL, NULL, "sim", engine->name, a->n_operands ? a->operand[0] : NULL, NULL};
    int status, code;

    status = smg_run_folder_open(&rec, a->output, &w->scenario, 1, &diag);
    if (status)
        return smg_outcome_refuse(&rec, status, &diag);
    if (rec.logging || rec.timeline)
        status = smg_recorder_observer(rec.logging ? &rec.log : NULL, rec.timeline, &observer);
    smg_interrupt_observer(&guard, &observer, &guarded);
    smg_progress_observe(&progress, a, "sim", w, &guarded);
    if (!status)
        status = smg_selection_create(w, &selection);
    if (!status)
        status = smg_sim_create(w, engine, selection, &guarded, &sim);
    if (!status)
        status = smg_sim_run(sim, &diag);
    smg_progress_end(&progress);
    if (status == SMG_ERR_INTERRUPTED)
        diag.text[0] = '\0'; /* says it all */
    else if (sim) {
        run.records = smg_sim_records(sim);
        run.stats = smg_sim_stats(sim);
    }
    code = smg_outcome_finish(&rec, &run, a, status, &diag);
    smg_recorder_observer_free(&observer);
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    return code;
}

static const char *const engines[] = {"simgrid", "native", NULL};

int smg_cmd_sim(const struct smg_args *a)
{
    struct smg_scenario s;
    struct smg_world w;
    char engine_set[SMG_NAME_MAX + 16], *engine = NULL;
    int code;

    smg_interrupt_watch();
    if (a->engine) {
        if (smg_cli_engine(a->engine))
            return SMG_EXIT_USAGE;
        snprintf(engine_set, sizeof engine_set, "engine=%s", a->engine);
        engine = engine_set;
    }
    code = smg_cli_world(a, engine, &s, &w);
    if (code)
        return code;
    smg_cli_timeline(a, &w);
    code = smg_cli_engine(engines[w.scenario.engine]); /* built in? */
    if (!code)
        code = simulate(a, &w, smg_engine_find(engines[w.scenario.engine]));
    smg_world_free(&w);
    return code;
}
