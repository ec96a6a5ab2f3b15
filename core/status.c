#include "core/status.h"

const char *smg_status_string(int status)
{
    switch (status) {
#define SMG_STATUS_CASE(code, name, text) \
    case code:                            \
        return text;
        SMG_STATUS_MAP(SMG_STATUS_CASE)
#undef SMG_STATUS_CASE
    default:
        return "unknown status";
    }
}
