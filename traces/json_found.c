#include "traces/json_found.h"

#include <stdio.h>
#include <string.h>

#define CUT 40

const char *smg_json_found(const json_t *value, char out[SMG_FOUND_MAX])
{
    char text[CUT + 1] = "";
    size_t bytes;

    if (value == NULL) {
        snprintf(out, SMG_FOUND_MAX, "nothing");
    } else if (json_is_object(value)) {
        snprintf(out, SMG_FOUND_MAX, "an object");
    } else if (json_is_array(value)) {
        snprintf(out, SMG_FOUND_MAX, "a list of %zu", json_array_size(value));
    } else {
        bytes = json_dumpb(value, text, CUT, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
        snprintf(out, SMG_FOUND_MAX, "'%s%s'", text, bytes > CUT ? "..." : "");
    }
    return out;
}
