/* Expressions of the validation table, over a book with points x/1, x/2 (run) and y/99 (failed). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation.h"
#include "tests/fuzz/fuzz.h"

static int fake_point(size_t i, struct smg_point_outcome *out)
{
    out->result.ttst_s = 10.0 * (double)(i + 1);
    out->result.tbt_s = 2;
    out->result.tokens = 20;
    for (uint32_t t = 1; t <= SMG_POINT_TOKENS; t++) {
        out->result.gap_s[t - 1] = t > 1 && t <= 20 ? t * (double)(i + 1) : NAN;
        out->result.token_ratio[t - 1] = t > 1 && t <= 7 ? 0.5 : 0;
    }
    if (i < 2)
        return SMG_OK;
    strcpy(out->diag.text, "refused");
    return SMG_ERR_UNSUPPORTED;
}

static void add_sweep(struct smg_book *b, const char *text)
{
    struct smg_diag diag = {""};
    struct smg_sweep s;

    fuzz_must(smg_sweep_read(fuzz_file(0, text, strlen(text)), &s, &diag) == SMG_OK);
    fuzz_must(smg_book_add(b, &s, &diag) == SMG_OK);
}

/* Books with the same points; one has been run. */
static void make(struct smg_book *wanted, struct smg_book *done)
{
    static const char x[] = "figure: x\naxes: [{axis: a, key: workload.requests, values: [1, 2]}]\n",
                      y[] = "figure: y\naxes: [{axis: a, key: seed, values: [99]}]\n";
    struct smg_diag diag = {""};
    size_t i;

    add_sweep(wanted, x);
    add_sweep(wanted, y);
    add_sweep(done, x);
    add_sweep(done, y);
    fuzz_must(smg_book_want(done, 0, 0, &diag) == SMG_OK);
    fuzz_must(smg_book_want(done, 0, 1, &diag) == SMG_OK);
    fuzz_must(smg_book_want(done, 1, 0, &diag) == SMG_OK);
    done->outcome = calloc(done->points, sizeof *done->outcome);
    fuzz_must(done->outcome);
    for (i = 0; i < done->points; i++)
        done->outcome[i].status = fake_point(i, &done->outcome[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct smg_book wanted, done;
    char *text = fuzz_text(data, bytes);
    struct smg_diag diag = {""};
    double x = 0;
    int asked, computed;

    if (!done.outcome)
        make(&wanted, &done);
    asked = smg_expression(text, &wanted, &x, &diag);
    fuzz_told(asked, &diag);
    computed = smg_expression(text, &done, &x, &diag);
    fuzz_told(computed, &diag);
    fuzz_must(!asked || computed);
    free(text);
    return 0;
}
