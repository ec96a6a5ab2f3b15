/* requests.csv: the reader of CSV files, and `smartgen summarize` on a folder with that file, alone and beside itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/csv.h"
#include "experiments/summarize.h"
#include "tests/fuzz/fuzz.h"

static void read_cells(const struct smg_csv *c)
{
    struct smg_diag diag = {""};
    size_t found;
    double x;

    fuzz_must(c->columns > 0);
    for (size_t k = 0; k < c->columns; k++) {
        fuzz_must(smg_csv_column(c, c->cell[k], &found, &diag) == SMG_OK && found <= k);
        for (size_t i = 0; i < c->rows; i++) {
            const char *cell = smg_csv_cell(c, i, k);
            int status = smg_csv_number(c, i, k, &x, &diag);
            fuzz_must(!strpbrk(cell, ",\n"));
            fuzz_told(status, &diag);
            fuzz_must(status || isfinite(x) == (cell[0] != '\0'));
        }
    }
}

static void summarize(const char *folder)
{
    const char *const folders[] = {folder, folder};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    struct smg_diag diag = {""};
    int one, two;

    fuzz_must(out);
    one = smg_summarize(folders, 1, out, NULL, NULL, &diag);
    fuzz_told(one, &diag);
    fuzz_must(fflush(out) == 0 && !one == (bytes > 0));
    two = smg_summarize(folders, 2, out, NULL, NULL, &diag);
    fuzz_must(two == (one ? one : SMG_ERR_INVALID)); /* a run counts once */
    fclose(out);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct smg_diag diag = {""};
    struct smg_csv c;
    int status = smg_csv_read(fuzz_folder_put(0, "requests.csv", data, bytes), &c, &diag);

    fuzz_told(status, &diag);
    if (!status)
        read_cells(&c);
    smg_csv_free(&c);
    summarize(fuzz_folder());
    return 0;
}
