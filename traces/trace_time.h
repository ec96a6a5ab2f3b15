/* Arrival times as the formats write them. */
#ifndef SMG_TRACES_TRACE_TIME_H
#define SMG_TRACES_TRACE_TIME_H

#include <stdint.h>

#define SMG_TRACE_NO_ORIGIN INT64_MIN

/* Converts a time to seconds after *origin, which the first row sets, so that large times keep their fractions in a double.
 * Returns NULL, or what was expected. */
typedef const char *(*smg_trace_time_fn)(const char *text, int64_t *origin, double *seconds_out);

/* A number of seconds; the origin is 0. */
const char *smg_trace_time_seconds(const char *text, int64_t *origin, double *seconds_out);
/* YYYY-MM-DD HH:MM:SS.fffffff, or with T for the blank, with nothing, Z or +00:00 behind it; the origin is the first row's day.
 */
const char *smg_trace_time_stamp(const char *text, int64_t *origin, double *seconds_out);
/* Whole nanoseconds; the origin is the first row's time. */
const char *smg_trace_time_ns(const char *text, int64_t *origin, double *seconds_out);
/* Seconds of a time in nanoseconds after *origin, which the first call sets. Times are not negative. */
double smg_trace_ns_after(int64_t ns, int64_t *origin);

#endif
