/* Status codes and diagnostics shared by every room. */
#ifndef SMG_CORE_STATUS_H
#define SMG_CORE_STATUS_H

#pragma GCC visibility push(default)

/* code, name, sentence: one list feeds the enum and smg_status_string(). 0 is success, errors are negative. */
#define SMG_STATUS_MAP(X)                                   \
    X(0, SMG_OK, "success")                                 \
    X(-1, SMG_ERR_NOMEM, "out of memory")                   \
    X(-2, SMG_ERR_INVALID, "invalid argument")              \
    X(-3, SMG_ERR_RANGE, "value out of range")              \
    X(-4, SMG_ERR_NOT_FOUND, "not found")                   \
    X(-5, SMG_ERR_PARSE, "malformed input")                 \
    X(-6, SMG_ERR_IO, "input/output error")                 \
    X(-7, SMG_ERR_UNSUPPORTED, "not supported")             \
    X(-8, SMG_ERR_PROTOCOL, "protocol violation")           \
    X(-9, SMG_ERR_DEADLOCK, "no event can make progress")   \
    X(-10, SMG_ERR_VERIFY, "verification failed")           \
    X(-11, SMG_ERR_LOST, "peer lost")                       \
    X(-12, SMG_ERR_CAPACITY, "capacity exceeded")           \
    X(-13, SMG_ERR_CONSERVATION, "conservation violated")   \
    X(-14, SMG_ERR_INTERRUPTED, "interrupted")

enum smg_status {
#define SMG_STATUS_ENUM(code, name, text) name = code,
    SMG_STATUS_MAP(SMG_STATUS_ENUM)
#undef SMG_STATUS_ENUM
};

/* One sentence for a status; "unknown status" for a value that is not one. Never NULL; static storage. */
const char *smg_status_string(int status);

/* What went wrong, in one line for a person: "trace.csv:17: field 'arrival_s': not a number". Filled by the function
 * that first finds the error; callers pass it on untouched. */
struct smg_diag {
    char text[512];
};

#pragma GCC visibility pop

#endif
