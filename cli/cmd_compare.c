/* smartgen compare: two record folders of the same requests side by side. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/output_file.h"
#include "experiments/compare.h"

static int print_json(const struct smg_comparison *c)
{
    json_t *j = smg_compare_json(c);
    int bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) || printf("\n") < 0;

    json_decref(j);
    return bad ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

static void write_csv(const void *c, FILE *f)
{
    smg_compare_csv(c, f);
}

int smg_cmd_compare(const struct smg_args *a)
{
    static const struct smg_output_kind table = {"table of a comparison", "request,token,quantity,unit,a,b,"};
    struct smg_comparison c;
    struct smg_diag diag = {""};
    int code = a->output ? smg_output_check(a->output, &table) : SMG_EXIT_OK, status;

    if (code)
        return code;
    status = smg_compare(a->operand[0], a->operand[1], &c, &diag);
    if (status)
        return smg_cli_fail(status, &diag);
    if (a->output)
        code = smg_output_write(a->output, write_csv, &c);
    if (code) {
        smg_comparison_free(&c);
        return code;
    }
    if (a->json)
        code = print_json(&c);
    else if (!a->quiet)
        smg_compare_print(&c, stdout);
    if (!code && a->tolerance >= 0 && !(100 * c.largest <= a->tolerance)) {
        fprintf(stderr, "smartgen: the largest error is %.4g %%, above --tolerance %g\n", 100 * c.largest, a->tolerance);
        code = SMG_EXIT_FAILED;
    }
    smg_comparison_free(&c);
    return code;
}
