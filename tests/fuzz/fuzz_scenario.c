/* Scenario files (YAML). */
#include "tests/fuzz/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct smg_diag diag = {""};
    struct smg_scenario s;
    int status = smg_scenario_load(fuzz_file(0, data, bytes), NULL, 0, &s, &diag);

    fuzz_told(status, &diag);
    if (!status)
        fuzz_scenario(&s);
    return 0;
}
