/* validation.yaml and validation_reasons.yaml, with a line "%%" between the two; the points that rows ask for. */
#include <math.h>
#include <string.h>

#include "experiments/validation.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t *separator(const uint8_t *data, size_t bytes)
{
    return bytes ? memmem(data, bytes, "\n%%\n", 4) : NULL;
}

/* A cell of a CSV file without quotes. */
static int plain(const char *text)
{
    return !strpbrk(text, ",\"\n");
}

static void check(const struct smg_validation *v)
{
    for (size_t i = 0; i < v->rows; i++) {
        const struct smg_validation_row *r = &v->row[i];
        fuzz_must(r->row[0] && r->quantity[0] && r->ours[0] && (r->relation == '=' || r->relation == '<'));
        fuzz_must(plain(r->row) && plain(r->id) && plain(r->quantity) && plain(r->condition) && plain(r->maximum));
        fuzz_must(plain(r->reason));
        fuzz_must(isnan(r->paper) || isfinite(r->paper));
        for (size_t k = 0; k < i; k++)
            fuzz_must(strcmp(v->row[k].row, r->row));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *second = separator(data, bytes);
    size_t first_bytes = second ? (size_t)(second - data) + 1 : bytes;
    struct smg_validation v;
    struct smg_book book;
    struct smg_diag diag = {""};
    int status;

    memset(&book, 0, sizeof book);
    fuzz_folder_put(0, "validation.yaml", data, first_bytes);
    fuzz_folder_put(1, "validation_reasons.yaml", second ? second + 4 : data, second ? bytes - first_bytes - 3 : 0);
    status = smg_validation_read(fuzz_folder(), &book, &v, &diag);
    fuzz_told(status, &diag);
    if (!status) {
        check(&v);
        fuzz_told(smg_validation_want(&v, &book, &diag), &diag);
    }
    smg_validation_free(&v);
    smg_book_free(&book);
    return 0;
}
