/* Request traces in columns; the first byte picks the format. */
#include "tests/fuzz/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum smg_trace_format format;

    if (bytes < 2)
        return 0;
    format = (enum smg_trace_format)(data[0] % FUZZ_TRACE_FORMATS);
    fuzz_trace(fuzz_trace_is_jsonl(format) ? SMG_TRACE_CSV : format, data + 1, bytes - 1);
    return 0;
}
