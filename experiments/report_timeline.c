/* The timeline of the report: the data that its script draws, from the timeline.json of each record folder that has one. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/files.h"
#include "experiments/report_priv.h"
#include "experiments/report_timeline.h"
#include "experiments/timeline.h"
#include "traces/text.h"

static const char *const resource_names[SMG_SHOWN_RESOURCES] = {"GPU main",   "GPU select", "copy H2D", "copy D2H",
                                                                "CPU gather", "NIC in",     "NIC out"};

/* A JSON string that can stand inside a script element. */
static void print_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

/* ---- Data ---- */

static void print_names(FILE *f, const struct smg_shown *s)
{
    fputs(",\"names\":[", f);
    for (size_t i = 0; i < s->names; i++) {
        fputs(i ? ",[" : "[", f);
        print_string(f, s->name[i].text);
        fprintf(f, ",\"%s\"]", smg_shown_kinds[s->name[i].kind]);
    }
    fputs("]", f);
}

static void begin_row(FILE *f, const struct smg_shown *s, const struct smg_shown_slice *slice)
{
    const char *process = "instance";

    for (size_t i = 0; i < s->processes; i++)
        if (s->process[i].pid == slice->pid)
            process = s->process[i].text;
    fputs("\n{\"of\":", f);
    print_string(f, process);
    if (slice->pid == SMG_TIMELINE_REQUESTS)
        fprintf(f, ",\"name\":\"request %u\"", slice->row);
    else
        fprintf(f, ",\"name\":\"%s\"", resource_names[slice->row]);
    fputs(",\"strips\":[", f);
}

/* Start since the start before it in the strip, duration, name, details up to the last one that is not 0. */
static void print_slice(FILE *f, const struct smg_shown_slice *slice, int64_t last)
{
    size_t n = SMG_SHOWN_DETAILS;

    while (n && !slice->detail[n - 1])
        n--;
    fprintf(f, "[%" PRId64 ",%" PRId64 ",%u", slice->start - last, slice->ticks, slice->name);
    for (size_t i = 0; i < n; i++)
        fprintf(f, ",%.15g", slice->detail[i]);
    fputc(']', f);
}

static void print_rows(FILE *f, const struct smg_shown *s)
{
    const struct smg_shown_slice *before = NULL;

    fputs(",\"rows\":[", f);
    for (size_t i = 0; i < s->slices; i++) {
        const struct smg_shown_slice *slice = &s->slice[i];
        int same_row = before && before->pid == slice->pid && before->row == slice->row;
        int same_strip = same_row && before->tid == slice->tid;
        if (!same_row) {
            fputs(before ? "]]}," : "", f);
            begin_row(f, s, slice);
        }
        fputs(same_strip ? "," : same_row ? "],[" : "[", f);
        print_slice(f, slice, same_strip ? before->start : 0);
        before = slice;
    }
    fputs(before ? "]]}]" : "]", f);
}

/* "": the scenario of the headline, or there is no headline. */
static const char *other_scenario(const struct smg_report_row *row, const struct smg_report_row *headline)
{
    if (!headline->present || smg_report_same_scenario(row, headline))
        return "";
    return row->scenario_path[0] ? row->scenario_path : "the default one with other settings";
}

static void print_run(FILE *f, const struct smg_report_row *row, const char *other, const char *family, const char *scheme,
                      const struct smg_shown *s)
{
    fputs("{\"folder\":", f);
    print_string(f, row->folder);
    fprintf(f, ",\"family\":\"%s\",\"scheme\":\"%s\",\"driver\":", family, scheme);
    print_string(f, row->driver);
    fputs(",\"other\":", f);
    print_string(f, other);
    fprintf(f, ",\"end\":%" PRId64 ",\"cut\":%" PRId64 ",\"requests\":%u,\"shown\":%u,\"operations\":%zu", s->end, s->cut,
            s->requests, s->requests < SMG_SHOWN_REQUESTS ? s->requests : (uint32_t)SMG_SHOWN_REQUESTS, s->operations);
    print_names(f, s);
    print_rows(f, s);
    fputs("}", f);
}

/* ---- The part ---- */

/* *bytes: 0 when there is no such file. */
static int find(const struct smg_report *r, const struct smg_report_row *row, char path[SMG_PATH_MAX], int64_t *bytes,
                struct smg_diag *diag)
{
    char folder[SMG_PATH_MAX];
    struct stat info;

    *bytes = 0;
    if (!row->present || !row->folder[0])
        return SMG_OK;
    if (smg_path_join(r->out_dir, row->folder, folder) || smg_path_join(folder, "timeline.json", path))
        return smg_diag_set(diag, SMG_ERR_RANGE, "%s: name is too long", r->out_dir);
    if (!stat(path, &info))
        *bytes = info.st_size;
    return SMG_OK;
}

/* What is drawn, as data of the page's script; *drawn counts the runs, *too_large those that are left out. */
static int print_runs(FILE *f, const struct smg_report *r, int *drawn, int *too_large, struct smg_diag *diag)
{
    int status = SMG_OK;

    *drawn = *too_large = 0;
    for (int i = 0; i < SMG_REPORT_FAMILIES * SMG_REPORT_SCHEMES && !status; i++) {
        int family = i / SMG_REPORT_SCHEMES, scheme = i % SMG_REPORT_SCHEMES;
        const struct smg_report_row *row = &r->run[family][scheme];
        char path[SMG_PATH_MAX];
        struct smg_shown shown;
        int64_t bytes;
        status = find(r, row, path, &bytes, diag);
        *too_large += bytes > SMG_SHOWN_FILE_BYTES;
        if (status || !bytes || bytes > SMG_SHOWN_FILE_BYTES)
            continue;
        status = smg_shown_read(path, &shown, diag);
        if (!status) {
            fputs(*drawn ? ",\n" : "<script type=\"application/json\" id=\"timeline-data\">\n[", f);
            print_run(f, row, other_scenario(row, &r->scheme[SMG_REPORT_SMARTGEN]), smg_report_families[family],
                      smg_report_schemes[scheme], &shown);
            ++*drawn;
        }
        smg_shown_free(&shown);
    }
    if (*drawn)
        fputs("]\n</script>\n", f);
    return status;
}

int smg_report_timeline(FILE *f, const struct smg_report *r, struct smg_diag *diag)
{
    int drawn, too_large, status = print_runs(f, r, &drawn, &too_large, diag);

    if (status)
        return status;
    if (too_large)
        fprintf(f, "<p class=\"note\">%d timeline%s left out: larger than %d MiB. Perfetto opens it.</p>\n", too_large,
                too_large > 1 ? "s are" : " is", SMG_SHOWN_FILE_BYTES >> 20);
    if (!drawn) {
        smg_html_missing(f, "No run has written a timeline yet",
                         "smartgen sim SCENARIO --timeline -o OUT/sim-smartgen; smartgen figures -o OUT");
        return SMG_OK;
    }
    fprintf(
        f,
        "<div id=\"timeline-view\"><noscript><p class=\"note\">Drawing it needs JavaScript; the same file opens in "
        "Perfetto.</p></noscript></div>\n"
        "<p class=\"note\">The first %d requests with all their stages, and the first %d operations of each run; all of it is in "
        "<code>timeline.json</code> of its record folder, which opens in Perfetto.</p>\n",
        SMG_SHOWN_REQUESTS, SMG_SHOWN_OPERATIONS);
    smg_html_again(f, "smartgen sim SCENARIO --set scheme=SCHEME --timeline -o OUT/FOLDER; smartgen figures -o OUT");
    return SMG_OK;
}
