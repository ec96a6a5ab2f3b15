/* What holds for every trace that a reader has accepted. */
#ifndef SMG_TESTS_FUZZ_TRACE_H
#define SMG_TESTS_FUZZ_TRACE_H

#include <math.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/trace_rows.h"
#include "traces/world.h"

enum { FUZZ_TRACE_FORMATS = SMG_TRACE_CSV + 1 };

static inline int fuzz_trace_is_jsonl(enum smg_trace_format format)
{
    return format == SMG_TRACE_MOONCAKE || format == SMG_TRACE_LLMSERVINGSIM;
}

/* data[0] picks limit, speed-up and hit share; the rest is the file. */
static inline void fuzz_trace(enum smg_trace_format format, const uint8_t *data, size_t bytes)
{
    uint32_t n = 0, limit = data[0] & 3;
    double speedup = data[0] & 4 ? 2.5 : 1, hit = data[0] & 8 ? 0.75 : 0;
    struct smg_request_spec *request = NULL;
    struct smg_diag diag = {""};
    int status = smg_trace_load(fuzz_file(0, data + 1, bytes - 1), format, limit, speedup, hit, &request, &n, &diag);

    fuzz_told(status, &diag);
    if (status)
        return;
    fuzz_must(n > 0 && (!limit || n <= limit));
    fuzz_must(request[0].arrival_s == 0);
    for (uint32_t i = 0; i < n; i++) {
        fuzz_must(isfinite(request[i].arrival_s) && (!i || request[i].arrival_s >= request[i - 1].arrival_s));
        fuzz_must(request[i].prompt_tokens >= 1 && request[i].prompt_tokens <= SMG_TRACE_TOKENS_MAX);
        fuzz_must(request[i].output_tokens >= 1 && request[i].output_tokens <= SMG_TRACE_TOKENS_MAX);
        fuzz_must(request[i].hit_tokens < request[i].prompt_tokens);
    }
    free(request);
}

#endif
