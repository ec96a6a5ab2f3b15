/* The interface of libsmartgen, whole. Compile and link with `pkg-config --cflags --libs smartgen`.
 *
 * From a scenario to numbers: smg_scenario_load, smg_world_load, smg_plan_make; to a run: smg_selection_create, smg_sim_create,
 * smg_sim_run, smg_sim_records; to a record folder: smg_outdir_begin, smg_run_write, smg_outdir_commit. A driver of one's own
 * steps the agents with smg_agent_step. A policy plug-in needs "core/plugin.h" only. */
#ifndef SMG_CLI_SMARTGEN_H
#define SMG_CLI_SMARTGEN_H

#include "core/agent.h"
#include "core/cost.h"
#include "core/grid.h"
#include "core/hack.h"
#include "core/importance.h"
#include "core/lanes.h"
#include "core/ledger.h"
#include "core/model.h"
#include "core/observer.h"
#include "core/plan.h"
#include "core/plugin.h"
#include "core/pool.h"
#include "core/rank.h"
#include "core/record.h"
#include "core/rng.h"
#include "core/scheme.h"
#include "core/selection.h"
#include "core/split.h"
#include "core/stats.h"
#include "core/status.h"
#include "core/world.h"
#include "experiments/log.h"
#include "experiments/run.h"
#include "sim/driver.h"
#include "sim/engine.h"
#include "traces/scenario.h"
#include "traces/world.h"

#endif
