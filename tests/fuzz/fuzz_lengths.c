/* Length distributions: a table of quantiles, or a file of pairs in any format; the first byte picks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "traces/lengths.h"

enum { DRAWS = 16 };

static void draw(const struct smg_lengths *l)
{
    struct smg_rng rng;
    uint32_t prompt, output;

    smg_rng_init(&rng, 1, "fuzz");
    for (int i = 0; i < DRAWS; i++) {
        smg_lengths_draw(l, &rng, &prompt, &output);
        fuzz_must(prompt >= 1 && prompt <= 16000000 && output >= 1 && output <= 16000000);
    }
}

static void check_quantiles(const struct smg_quantiles *q)
{
    double mean = smg_quantiles_mean(q);

    fuzz_must(q->n >= 2 && q->n <= SMG_QUANTILES_MAX);
    fuzz_must(isfinite(mean) && mean >= q->tokens[0] * (1 - 1e-12) && mean <= q->tokens[q->n - 1] * (1 + 1e-12));
}

static void fuzz_table(const char *path)
{
    struct smg_lengths l;
    struct smg_diag diag = {""};
    int status;

    memset(&l, 0, sizeof l);
    status = smg_lengths_read_table(path, &l, &diag);
    fuzz_told(status, &diag);
    if (status)
        return;
    check_quantiles(&l.prompt);
    check_quantiles(&l.output);
    draw(&l);
}

static void fuzz_pairs(const char *path)
{
    struct smg_lengths *l = NULL;
    struct smg_diag diag = {""};
    int status = smg_lengths_open(path, &l, &diag);

    fuzz_told(status, &diag);
    if (status)
        return;
    fuzz_must(l->n_pairs >= 1 && l->pair);
    draw(l);
    smg_lengths_close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!bytes)
        return 0;
    if (data[0] & 1)
        fuzz_pairs(fuzz_file(0, data + 1, bytes - 1));
    else
        fuzz_table(fuzz_file(0, data + 1, bytes - 1));
    return 0;
}
