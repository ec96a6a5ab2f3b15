/* What the report knows, and the parts it is made of; private to experiments/. */
#ifndef SMG_EXPERIMENTS_REPORT_PRIV_H
#define SMG_EXPERIMENTS_REPORT_PRIV_H

#include <stdint.h>
#include <stdio.h>

#include "core/stats.h"
#include "core/status.h"
#include "core/world.h"

enum { SMG_REPORT_FULL, SMG_REPORT_PARTIAL, SMG_REPORT_SMARTGEN, SMG_REPORT_SCHEMES };
enum { SMG_REPORT_SIM, SMG_REPORT_EMU_SIM, SMG_REPORT_EMU, SMG_REPORT_FAMILIES };

extern const char *const smg_report_schemes[SMG_REPORT_SCHEMES];   /* full, partial, smartgen */
extern const char *const smg_report_families[SMG_REPORT_FAMILIES]; /* of record folders: sim, emu-sim, emu */

/* One run in a table. Text is "" and a number NAN where it is not known. */
struct smg_report_row {
    int present;
    char folder[SMG_NAME_MAX]; /* in the output folder; "" when the numbers come from fig11.csv */
    double ttft_s, ttst_s, tbt_s, on_demand_ratio;
    double bytes[SMG_PATHS];
    uint32_t batch; /* requests */
    char digest[32];
    char driver[SMG_NAME_MAX], engine[SMG_NAME_MAX], version[SMG_NAME_MAX];
    char scenario_path[SMG_PATH_MAX]; /* as given to the run, "" defaults */
    char scenario_digest[32];         /* of that file */
    uint64_t seed;
    int labelled; /* seed and synthetic flags are known */
    int synthetic_importance, synthetic_selection, synthetic_workload;
    /* Of its scenario, for a person. */
    char model[SMG_PATH_MAX], prefill_gpu[SMG_PATH_MAX];
    int is_batch, has_timeline;
    double prompt_tokens, output_tokens, decode_gbps;
};

struct smg_report {
    const char *out_dir;
    struct smg_report_row run[SMG_REPORT_FAMILIES][SMG_REPORT_SCHEMES];
    struct smg_report_row scheme[SMG_REPORT_SCHEMES]; /* family sim when it is complete, else the largest batch of fig11.csv */
    int scheme_from_figure;
};

/* Reads what is there. A file that is there and cannot be read is an error. */
int smg_report_load(const char *out_dir, struct smg_report *out, struct smg_diag *diag);

/* As far as is known, of runs that are present. Rows from fig11.csv have the default scenario. */
int smg_report_same_scenario(const struct smg_report_row *a, const struct smg_report_row *b);

/* A place in the template, by name; f is a file that is being written. Returns a status. */
struct smg_report_part {
    const char *name;
    int (*print)(FILE *f, const struct smg_report *r, struct smg_diag *diag);
};

/* All parts. */
int smg_report_headline(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_bars(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_timeline(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_scheme_table(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_emulation(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_figures(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_validation(FILE *f, const struct smg_report *r, struct smg_diag *diag);
int smg_report_provenance(FILE *f, const struct smg_report *r, struct smg_diag *diag);

/* ---- HTML ---- */

/* Text with &, <, > and " as entities. */
void smg_html_text(FILE *f, const char *text);
/* A table that scrolls inside its own box, which the keyboard can reach; heads[] NULL-terminated, "<name" of a column of text.
 * options: more classes of the table, "" none. */
void smg_html_begin_table(FILE *f, const char *name, const char *options, const char *const *heads);
void smg_html_end_table(FILE *f);
/* Three digits; a dash when x does not exist. */
void smg_html_number_cell(FILE *f, double x);
void smg_html_text_cell(FILE *f, const char *kind, const char *text);
/* "6.88 GB": decimal units, three digits. */
void smg_html_bytes(FILE *f, double bytes);
/* "WHAT: COMMAND" in the place of something that is not there. */
void smg_html_missing(FILE *f, const char *what, const char *command);
/* The command that makes a part again. */
void smg_html_again(FILE *f, const char *command);
/* The command of a run, or with row NULL of any run of a family and scheme; scheme may be a word like $s. */
void smg_report_run_command(FILE *f, const struct smg_report_row *row, int family, const char *scheme);

#endif
