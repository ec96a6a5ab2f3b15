/* What the report knows, and the parts it is made of; private to experiments/. */
#ifndef SMG_EXPERIMENTS_REPORT_PRIV_H
#define SMG_EXPERIMENTS_REPORT_PRIV_H

#include <stdint.h>
#include <stdio.h>

#include "core/stats.h"
#include "core/status.h"
#include "core/world.h"

enum { SMG_REPORT_SCHEMES = 3 };

extern const char *const smg_report_schemes[SMG_REPORT_SCHEMES]; /* full, partial, smartgen */

/* One run in a table. */
struct smg_report_row {
    int present;
    double ttft_s, ttst_s, tbt_s, on_demand_ratio;
    double bytes[SMG_PATHS];
    uint32_t batch;  /* requests */
    char digest[32]; /* "" none */
    char engine[SMG_NAME_MAX];
    char scenario_path[SMG_PATH_MAX]; /* as given to the run, "" defaults */
    uint64_t seed;
    int labelled; /* seed and synthetic flags are known */
    int synthetic_importance, synthetic_selection, synthetic_workload;
};

struct smg_report {
    const char *out_dir;
    struct smg_report_row scheme[SMG_REPORT_SCHEMES];
    struct smg_report_row emu[SMG_REPORT_SCHEMES], emu_sim[SMG_REPORT_SCHEMES];
    int scheme_from_figure;
};

/* Reads what is there. A file that is there and cannot be read is an error. */
int smg_report_load(const char *out_dir, struct smg_report *out, struct smg_diag *diag);

/* A place in the template, by name; f is a memory stream. Returns a status. */
struct smg_report_part {
    const char *name;
    int (*print)(FILE *f, const struct smg_report *r, struct smg_diag *diag);
};

extern const struct smg_report_part smg_report_parts[]; /* ended by a NULL name */

/* Parts in files of their own. */
int smg_report_figures(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_validation(FILE *f, const struct smg_report *r, struct smg_diag *diag);

/* A table that scrolls inside its own box; heads[] NULL-terminated. */
void smg_html_begin_table(FILE *f, const char *const *heads);
void smg_html_end_table(FILE *f);
/* Three digits; a dash when x does not exist. */
void smg_html_number_cell(FILE *f, double x);
/* "WHAT: COMMAND" in the place of something that is not there. */
void smg_html_missing(FILE *f, const char *what, const char *command);
/* Text with &, <, > and " as entities. */
void smg_html_text(FILE *f, const char *text);
/* "6.88 GB": decimal units, three digits. */
void smg_html_bytes(FILE *f, double bytes);

#endif
