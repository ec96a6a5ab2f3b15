/* The texts of --set, one a line. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/scenario.h"

enum { SETS = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = fuzz_text(data, bytes), *line = text;
    const char *set[SETS];
    struct smg_diag diag = {""};
    struct smg_scenario s;
    size_t n = 0;
    int status;

    while (line && n < SETS)
        set[n++] = strsep(&line, "\n");
    status = smg_scenario_load(NULL, set, n, &s, &diag);
    fuzz_told(status, &diag);
    if (!status)
        fuzz_scenario(&s);
    free(text);
    return 0;
}
