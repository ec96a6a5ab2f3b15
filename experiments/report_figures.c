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

/* What gnuplot writes and what it becomes in the page; NULL: an id, which gets a prefix. Colours of series stay: the page's style
 * maps them, by attribute, to those of its theme. */
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

/* What is left out: names of plots, the same in every panel, and titles, which would show as the tips of a pointer. Returns what
 * follows, at itself when nothing is left out. */
static const char *skip(const char *at, const char *id)
{
    static const char plot[] = " id=\"", title[] = "<title>", title_end[] = "</title>";
    const char *end = at;

    if (!strncmp(at, plot, sizeof plot - 1) && !strncmp(at + sizeof plot - 1, id, strlen(id)))
        end = strchr(at + sizeof plot - 1, '"');
    else if (!strncmp(at, title, sizeof title - 1))
        end = strstr(at, title_end);
    if (!end || end == at)
        return at;
    return end + (*end == '"' ? 1 : sizeof title_end - 1);
}

/* gnuplot draws in black, and gives its marks the same ids in every file: inside the page they take the page's colour and ids of
 * their own. */
static void inline_svg(FILE *f, const char *svg, const char *id, const char *layout)
{
    const char *at = strstr(svg, "<svg"), *next;

    while (at && *at) {
        size_t i, n = sizeof changes / sizeof changes[0];
        if (!strncmp(at, "base64,", 7)) {
            at = copy_picture(f, at);
            continue;
        }
        next = skip(at, id);
        if (next != at) {
            at = next;
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

/* A drawing is not blown up by more than a tenth, so that all have letters of about one size. */
static double width_of(const char *svg)
{
    const char *box = strstr(svg, "viewBox=\"0 0 ");
    double width = box ? strtod(box + strlen("viewBox=\"0 0 "), NULL) : 0;

    return width > 0 ? width : 1000;
}

/* The drawing, for one width of page; title is what it is called for those who do not see it. */
static int print_svg(FILE *f, const struct smg_report *r, const char *id, const char *suffix, const char *layout,
                     const char *title, struct smg_diag *diag)
{
    char *svg = NULL;
    int status = read_part(r, id, suffix, &svg, diag);

    if (status)
        return status;
    fprintf(f, "<div class=\"%s%s\" style=\"max-width:%.0fpx\" role=\"img\" aria-label=\"", layout,
            strstr(svg, "<image") ? " heat" : "", 1.1 * width_of(svg));
    smg_html_text(f, title);
    fputs("\">\n", f);
    inline_svg(f, svg, id, layout);
    fputs("</div>\n", f);
    free(svg);
    return SMG_OK;
}

/* The first line of a caption is "ID. TITLE."; it is cut off, without id and the last dot. Returns the rest. */
static char *cut_title(char *caption, const char *id, const char **title)
{
    char *end = strchr(caption, '\n'), *rest = end ? end + 1 : caption + strlen(caption);
    size_t n = strlen(id);

    if (end)
        *end = '\0';
    *title = !strncmp(caption, id, n) && !strncmp(caption + n, ". ", 2) ? caption + n + 2 : caption;
    end = caption + strlen(caption);
    if (end > *title && end[-1] == '.')
        end[-1] = '\0';
    return rest;
}

static int print_caption(FILE *f, const char *text, const char *id)
{
    char command[SMG_NAME_MAX];

    fputs("<figcaption>", f);
    smg_html_text(f, text);
    fputs("</figcaption>\n", f);
    snprintf(command, sizeof command, "smartgen figures %.20s -o OUT", id);
    smg_html_again(f, command);
    return SMG_OK;
}

/* *drawn counts the figures that are there. */
static int print_figure(FILE *f, const struct smg_report *r, const char *id, int *drawn, struct smg_diag *diag)
{
    char *caption = NULL, *rest;
    const char *title;
    int status;

    if (read_part(r, id, ".txt", &caption, NULL))
        return SMG_OK;
    ++*drawn;
    rest = cut_title(caption, id, &title);
    fprintf(f, "<figure id=\"%s\">\n<h3><span class=\"id\">%s</span> ", id, id);
    smg_html_text(f, title);
    fputs("</h3>\n", f);
    status = print_svg(f, r, id, ".svg", "wide", title, diag);
    if (!status)
        status = print_svg(f, r, id, "-narrow.svg", "narrow", title, diag);
    if (!status)
        status = print_caption(f, rest, id);
    fputs("</figure>\n", f);
    free(caption);
    return status;
}

int smg_report_figures(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    int status = SMG_OK, drawn = 0, all = 0;

    for (const char *const *id = smg_figure_ids; *id && !status; id++) {
        if (!strcmp(*id, "validation"))
            continue;
        all++;
        status = print_figure(f, r, *id, &drawn, diag);
    }
    if (!drawn)
        smg_html_missing(f, "Not drawn yet", "smartgen figures -o OUT");
    else if (drawn < all)
        smg_html_missing(f, "Not all figures have been drawn yet; for all of them", "smartgen figures -o OUT");
    return status;
}
