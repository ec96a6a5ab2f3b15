/* Sweeps: many scenarios described by one small file (experiments/figNN.yaml).
 *
 *     figure: fig11
 *     title: one line
 *     caption: what was chosen and why               # optional
 *     labels: what is calibrated, what is predicted  # optional
 *     run: sim                                       # sim; plan: closed forms only; heat: selection counts
 *     base: {KEY: VALUE, ...}                        # scenario keys, nested or dotted
 *     axes:                                          # the points are their product, at most 10000, the last axis fastest
 *       - {axis: batch, key: workload.requests, values: [1, 2, 3]}
 *       - axis: scheme
 *         points: {full: {scheme: full}, other: {scheme: smartgen, selector: hata}}
 *     speedup: {axis: ranking, over: random}         # optional: columns ttst_speedup, tbt_speedup
 *     tokens: 64                                     # optional: also ID-tokens.csv, tokens 2..64
 *
 * Beside scenario keys a set may hold kr_share: that share of a prompt's non-empty blocks becomes proactive.kr_blocks. Later sets
 * win over earlier ones. */
#ifndef SMG_EXPERIMENTS_SWEEP_H
#define SMG_EXPERIMENTS_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/world.h"

enum { SMG_SWEEP_AXES = 4, SMG_SWEEP_NAME = 48, SMG_SWEEP_POINTS_MAX = 10000 };

enum smg_sweep_run { SMG_SWEEP_SIM, SMG_SWEEP_PLAN, SMG_SWEEP_HEAT };

/* "KEY=VALUE" lines as for --set, and where they stand. */
struct smg_sweep_set {
    char **text;
    size_t n;
    double kr_share; /* NAN: not given */
};

struct smg_sweep_value {
    char name[SMG_SWEEP_NAME];
    struct smg_sweep_set set;
};

struct smg_sweep_axis {
    char name[SMG_SWEEP_NAME];
    struct smg_sweep_value *value;
    size_t n;
};

struct smg_sweep {
    char id[SMG_SWEEP_NAME];
    char path[SMG_PATH_MAX]; /* of the file */
    char title[256], caption[2048], labels[1024];
    enum smg_sweep_run run;
    struct smg_sweep_set base;
    struct smg_sweep_axis axis[SMG_SWEEP_AXES];
    size_t axes;
    int speedup_axis;    /* -1: none */
    size_t speedup_over; /* value of that axis */
    uint32_t tokens;     /* 0: no file of tokens */
};

struct smg_yaml;
struct yaml_node_s;

/* Reads a file. Unknown keys, scenario keys and values that do not exist, and names given twice are errors with file and line. On
 * error *out is zeroed. */
int smg_sweep_read(const char *path, struct smg_sweep *out, struct smg_diag *diag);
/* The same from a node of a file that holds several. */
int smg_sweep_of_node(struct smg_yaml *y, const struct yaml_node_s *node, struct smg_sweep *out, struct smg_diag *diag);
void smg_sweep_free(struct smg_sweep *s);

size_t smg_sweep_points(const struct smg_sweep *s);
/* Value of an axis at a point. */
const struct smg_sweep_value *smg_sweep_at(const struct smg_sweep *s, size_t point, size_t axis);
/* "fig11/full/6". */
void smg_sweep_name(const struct smg_sweep *s, size_t point, char *out, size_t out_bytes);
/* Point with this name; SIZE_MAX: none. */
size_t smg_sweep_find(const struct smg_sweep *s, const char *name);
/* Point that differs only in the value of the speed-up's axis. */
size_t smg_sweep_reference(const struct smg_sweep *s, size_t point);
/* The scenario of a point. diag names the point. */
int smg_sweep_scenario(const struct smg_sweep *s, size_t point, struct smg_scenario *out, struct smg_diag *diag);

/* Folder of the sweep files: $SMARTGEN_EXPERIMENTS, else beside an uninstalled program, else the installed one. */
const char *smg_sweeps_dir(void);

#endif
