/* Pieces of HTML that the parts of the report share. */
#include <math.h>
#include <string.h>

#include "experiments/report_priv.h"

void smg_html_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

void smg_html_bytes(FILE *f, double bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    size_t i = 0;

    if (!isfinite(bytes)) {
        fputs("&ndash;", f);
        return;
    }
    while (bytes >= 999.5 && i + 1 < sizeof unit / sizeof unit[0]) {
        bytes /= 1000;
        i++;
    }
    fprintf(f, "%.3g %s", bytes, unit[i]);
}

/* ---- Tables ---- */

static void head_cell(FILE *f, const char *text)
{
    int is_text = text[0] == '<';

    fprintf(f, "<th scope=\"col\"%s>", is_text ? " class=\"text\"" : "");
    smg_html_text(f, text + is_text);
    fputs("</th>", f);
}

void smg_html_begin_table(FILE *f, const char *name, const char *options, const char *const *heads)
{
    fputs("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", f);
    smg_html_text(f, name);
    fprintf(f, "\"><table class=\"data %s\">\n<thead><tr>", options);
    for (; *heads; heads++)
        head_cell(f, *heads);
    fputs("</tr></thead>\n<tbody>\n", f);
}

void smg_html_end_table(FILE *f)
{
    fputs("</tbody>\n</table></div>\n", f);
}

void smg_html_number_cell(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, "<td>%.3g</td>", x);
    else
        fputs("<td>&ndash;</td>", f);
}

void smg_html_text_cell(FILE *f, const char *kind, const char *text)
{
    fprintf(f, "<td class=\"%s\">", kind);
    smg_html_text(f, text[0] ? text : "\u2013");
    fputs("</td>", f);
}

/* ---- Commands ---- */

void smg_html_missing(FILE *f, const char *what, const char *command)
{
    fputs("<p class=\"missing\">", f);
    smg_html_text(f, what);
    fputs(": <code>", f);
    smg_html_text(f, command);
    fputs("</code></p>\n", f);
}

void smg_html_again(FILE *f, const char *command)
{
    fputs("<p class=\"again\">To make this part again: <code>", f);
    smg_html_text(f, command);
    fputs("</code></p>\n", f);
}

void smg_report_run_command(FILE *f, const struct smg_report_row *row, int family, const char *scheme)
{
    const char *scenario = row && row->present ? row->scenario_path : "SCENARIO";

    fprintf(f, "smartgen %s", family == SMG_REPORT_EMU ? "emu" : "sim");
    fputs(scenario[0] ? " " : "", f);
    smg_html_text(f, scenario);
    fprintf(f, " --set scheme=%s%s -o OUT/%s-%s", scheme, row && row->has_timeline ? " --timeline" : "",
            smg_report_families[family], scheme);
}
