/* The scenario in run.json. */
#include "tests/fuzz/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *root = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES, NULL);
    struct smg_diag diag = {""};
    struct smg_scenario s;
    int status;

    if (!root)
        return 0;
    status = smg_scenario_from_json(root, &s, &diag);
    fuzz_told(status, &diag);
    if (!status)
        fuzz_scenario(&s);
    json_decref(root);
    return 0;
}
