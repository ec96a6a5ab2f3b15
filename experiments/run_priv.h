/* The parts of smg_run_write, and what else only this room needs of a record folder. */
#ifndef SMG_EXPERIMENTS_RUN_PRIV_H
#define SMG_EXPERIMENTS_RUN_PRIV_H

#include <jansson.h>

#include "experiments/run.h"

/* The columns of requests.csv and tokens.csv. */
extern const char smg_requests_header[], smg_tokens_header[];
struct smg_csv;
/* Whether it is a requests.csv of so many requests: columns, the kind and range of every cell, and that nothing is missing that
 * the status asks for. SMG_ERR_PARSE names file, line and field. */
int smg_requests_check(const struct smg_csv *c, uint32_t requests, struct smg_diag *diag);
/* Which inputs were synthetic: an object of true and false. NULL: out of memory. */
json_t *smg_synthetic_json(const struct smg_run *run);

/* Each writes one file of the record folder at path. */
int smg_write_requests_csv(const struct smg_run *run, const char *path, struct smg_diag *diag);
int smg_write_tokens_csv(const struct smg_run *run, const char *path, struct smg_diag *diag);
int smg_write_run_json(const struct smg_run *run, const char *path, struct smg_diag *diag);
/* laws[n_laws] are the conservation laws as checked. */
int smg_write_summary_json(const struct smg_run *run, const struct smg_law *laws, size_t n_laws, const char *path,
                           struct smg_diag *diag);
/* Reads the steps of an event and an action log. */
int smg_write_decisions_csv(const struct smg_world *w, const char *events_path, const char *actions_path, const char *path,
                            struct smg_diag *diag);

/* What run.json of a record folder says the run was made with, one level deep: "driver", "engine" (the one that ran), "version",
 * "inputs" (without the scenario file), and every other scenario key by its whole name, but for those that make no other
 * experiment: seed, records.*, slo.*. The seed by itself, and which inputs were
 * synthetic, NULL where the file does not say.
 * New reference. On error the outputs are unchanged; messages name the file. */
int smg_run_settings(const char *dir, json_t **settings_out, uint32_t *requests_out, uint64_t *seed_out,
                     json_t **synthetic_out, struct smg_diag *diag);

/* For folders that hold more than one run, and that several processes may add files to at a time. Begin takes no lock. Add moves
 * every file into the final folder and leaves all others there alone. Finish adds, unless status is an error, and clears up;
 * returns the first error, whose message names final paths. */
int smg_outdir_begin_shared(const char *path, struct smg_outdir *out, struct smg_diag *diag);
int smg_outdir_add(struct smg_outdir *o, struct smg_diag *diag);
int smg_outdir_finish(struct smg_outdir *o, int status, struct smg_diag *diag);

#endif
