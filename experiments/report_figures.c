/* The figures of the report: every one that lies in the folder, drawn inline. */
#include <stdlib.h>
#include <string.h>

#include "experiments/figures.h"
#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "traces/text.h"

enum { PART_BYTES_MAX = 1 << 24 };

static int read_part(const struct smg_report *r, const char *id, const char *suffix, char **out, struct smg_diag *diag)
{
    char path[SMG_PATH_MAX], name[SMG_NAME_MAX];
    size_t bytes;

    snprintf(name, sizeof name, "%.40s%s", id, suffix);
    if (smg_path_join(r->out_dir, name, path))
        return smg_diag_set(diag, SMG_ERR_RANGE, "%s: name is too long", r->out_dir);
    return smg_file_read(path, PART_BYTES_MAX, out, &bytes, diag);
}

/* What gnuplot writes and what it becomes in the page; NULL: an id, which gets a prefix. */
static const char *const changes[][2] = {
    {"color=\"black\"", "color=\"inherit\""},
    {"stroke='black'", "stroke='currentColor'"},
    {"stroke=\"black\"", "stroke=\"currentColor\""},
    {"fill=\"black\"", "fill=\"currentColor\""},
    {"gpPt", NULL},
    {"gpDot", NULL},
    {"gnuplot_canvas", NULL},
    {"id='textbox'", ""},
    {"id='greybox'", ""},
};

/* Copies an embedded picture as it is: its text is no markup. */
static const char *copy_picture(FILE *f, const char *at)
{
    size_t n = strcspn(at, "'\"");

    fwrite(at, 1, n, f);
    return at + n;
}

/* gnuplot draws in black, and gives its marks the same ids in every file: inside the page they take the page's colour and ids of
 * their own. */
static void inline_svg(FILE *f, const char *svg, const char *id, const char *layout)
{
    const char *at = strstr(svg, "<svg");

    while (at && *at) {
        size_t i, n = sizeof changes / sizeof changes[0];
        if (!strncmp(at, "base64,", 7)) {
            at = copy_picture(f, at);
            continue;
        }
        for (i = 0; i < n && strncmp(at, changes[i][0], strlen(changes[i][0])); i++)
            ;
        if (i == n) {
            fputc(*at++, f);
            continue;
        }
        if (changes[i][1])
            fputs(changes[i][1], f);
        else
            fprintf(f, "%s_%s_%s", id, layout, changes[i][0]);
        at += strlen(changes[i][0]);
    }
}

static int print_svg(FILE *f, const struct smg_report *r, const char *id, const char *suffix, const char *layout,
                     struct smg_diag *diag)
{
    char *svg = NULL;
    int status = read_part(r, id, suffix, &svg, diag);

    if (status)
        return status;
    fprintf(f, "<div class=\"%s\">\n", layout);
    inline_svg(f, svg, id, layout);
    fputs("</div>\n", f);
    free(svg);
    return SMG_OK;
}

/* *any is set when the figure is there. */
static int print_figure(FILE *f, const struct smg_report *r, const char *id, int *any, struct smg_diag *diag)
{
    char *caption = NULL;
    int status;

    if (read_part(r, id, ".txt", &caption, NULL))
        return SMG_OK;
    *any = 1;
    fprintf(f, "<h3>%s</h3>\n<figure>\n", id);
    status = print_svg(f, r, id, ".svg", "wide", diag);
    if (!status)
        status = print_svg(f, r, id, "-narrow.svg", "narrow", diag);
    fputs("<figcaption>", f);
    smg_html_text(f, caption);
    fputs("</figcaption>\n</figure>\n", f);
    free(caption);
    return status;
}

int smg_report_figures(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    int status = SMG_OK, any = 0;

    for (const char *const *id = smg_figure_ids; *id && !status; id++)
        if (strcmp(*id, "validation"))
            status = print_figure(f, r, *id, &any, diag);
    if (!any)
        smg_html_missing(f, "Not drawn yet", "smartgen figures");
    return status;
}
