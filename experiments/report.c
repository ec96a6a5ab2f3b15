/* The page: a template of the plots folder with its {{places}} filled. */
#include "experiments/report.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/figures.h"
#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "experiments/run_priv.h"
#include "traces/text.h"

enum { TEMPLATE_BYTES_MAX = 1 << 20 };

static const struct smg_report_part parts[] = {
    {"headline", smg_report_headline},     {"bars", smg_report_bars},
    {"timeline", smg_report_timeline},     {"schemes", smg_report_scheme_table},
    {"figures", smg_report_figures},       {"emulation", smg_report_emulation},
    {"validation", smg_report_validation}, {"provenance", smg_report_provenance},
};

static int fill(FILE *f, const struct smg_report *r, const char *name, size_t length, struct smg_diag *diag)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strlen(parts[i].name) == length && !strncmp(parts[i].name, name, length))
            return parts[i].print(f, r, diag);
    return smg_diag_set(diag, SMG_ERR_PARSE, "report.html: no part is called '%.*s'", (int)(length < 60 ? length : 60), name);
}

static int render(FILE *f, const struct smg_report *r, const char *template, struct smg_diag *diag)
{
    const char *at = template, *open;
    int status = SMG_OK;

    while (!status && (open = strstr(at, "{{"))) {
        const char *close = strstr(open, "}}");
        if (!close)
            return smg_diag_set(diag, SMG_ERR_PARSE, "report.html: '{{' without '}}'");
        fwrite(at, 1, (size_t)(open - at), f);
        status = fill(f, r, open + 2, (size_t)(close - open - 2), diag);
        at = close + 2;
    }
    fputs(at, f);
    return status;
}

static int write_page(const struct smg_outdir *o, const struct smg_report *r, const char *template, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    FILE *f = NULL;
    int status = smg_outdir_file(o, "report.html", path);

    if (!status)
        status = smg_output_open(path, &f, diag);
    if (status)
        return status;
    status = render(f, r, template, diag);
    return smg_output_close(f, path, status, diag);
}

int smg_report_write(const char *out_dir, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX], *template = NULL;
    struct smg_report *r = malloc(sizeof *r); /* too large for the stack */
    struct smg_outdir o;
    size_t bytes;
    int status = r ? smg_report_load(out_dir, r, diag) : SMG_ERR_NOMEM;

    if (status)
        goto free_report;
    status = smg_path_join(smg_plots_dir(), "report.html", path);
    if (status) {
        smg_diag_set(diag, status, "%s: name is too long", smg_plots_dir());
        goto free_report;
    }
    status = smg_file_read(path, TEMPLATE_BYTES_MAX, &template, &bytes, diag);
    if (status)
        goto free_report;
    status = smg_outdir_begin_shared(out_dir, &o, diag);
    if (status)
        goto free_template;
    status = smg_outdir_finish(&o, write_page(&o, r, template, diag), diag);
free_template:
    free(template);
free_report:
    free(r);
    return status;
}
