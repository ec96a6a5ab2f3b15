#include "traces/trace_time.h"

#include <string.h>

#include "core/status.h"
#include "traces/text.h"

const char *smg_trace_time_seconds(const char *text, int64_t *origin, double *seconds_out)
{
    (void)origin;
    return smg_text_double(text, seconds_out) == SMG_OK ? NULL : "a number of seconds";
}

double smg_trace_ns_after(int64_t ns, int64_t *origin)
{
    if (*origin == SMG_TRACE_NO_ORIGIN) {
        *origin = ns;
    }
    return (double)(ns - *origin) / 1e9;
}

const char *smg_trace_time_ns(const char *text, int64_t *origin, double *seconds_out)
{
    uint64_t ns;

    if (smg_text_u64(text, &ns) != SMG_OK || ns > INT64_MAX) {
        return "nanoseconds in [0, 2^63-1]";
    }
    *seconds_out = smg_trace_ns_after((int64_t)ns, origin);
    return NULL;
}

/* Days since 1970-01-01 of a Gregorian date; H. Hinnant, "chrono-compatible low-level date algorithms", days_from_civil. */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t era, year_of_era, day_of_year;

    year -= month <= 2;
    era = year / 400;
    year_of_era = year - era * 400;
    day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* Reads exactly n digits at *cursor and the separator after them (0: none; a blank: or T, as in ISO 8601). -1: something else is
 * there. */
static int digits(const char **cursor, int n, char separator)
{
    int value = 0;

    for (; n > 0; n--, (*cursor)++) {
        if (**cursor < '0' || **cursor > '9') {
            return -1;
        }
        value = 10 * value + (**cursor - '0');
    }
    if (separator != '\0') {
        if (**cursor != separator && !(separator == ' ' && **cursor == 'T')) {
            return -1;
        }
        (*cursor)++;
    }
    return value;
}

/* Reads ".ddd" of any length; false when a dot has no digit behind it. */
static int fraction(const char **cursor, double *out)
{
    double scale = 0.1;

    *out = 0;
    if (**cursor != '.') {
        return 1;
    }
    (*cursor)++;
    if (**cursor < '0' || **cursor > '9') {
        return 0;
    }
    for (; **cursor >= '0' && **cursor <= '9'; (*cursor)++, scale /= 10) {
        *out += (**cursor - '0') * scale;
    }
    return 1;
}

/* YYYY-MM-DD HH:MM:SS.fffffff, as the Azure traces write it; newer ones end in +00:00. Counting from the day of the first row
 * keeps 100 ns exact in a double. */
const char *smg_trace_time_stamp(const char *text, int64_t *origin, double *seconds_out)
{
    static const char *const expected = "a time YYYY-MM-DD HH:MM:SS.fffffff";
    static const char *const utc = "a time in UTC, with +00:00, Z or nothing behind it";
    const char *c = text;
    int year = digits(&c, 4, '-'), month = year < 0 ? -1 : digits(&c, 2, '-'), date = month < 0 ? -1 : digits(&c, 2, ' ');
    int hour = date < 0 ? -1 : digits(&c, 2, ':'), minute = hour < 0 ? -1 : digits(&c, 2, ':'), second;
    double part;

    second = minute < 0 ? -1 : digits(&c, 2, '\0');
    if (second < 0 || month < 1 || month > 12 || date < 1 || date > 31 || hour > 23 || minute > 59 || second > 60) {
        return expected;
    }
    if (date > days_in(year, month)) {
        return "a day that its month has";
    }
    if (!fraction(&c, &part)) {
        return expected;
    }
    if (*c != '\0' && strcmp(c, "+00:00") != 0 && strcmp(c, "Z") != 0) {
        return utc;
    }
    if (*origin == SMG_TRACE_NO_ORIGIN) {
        *origin = days_of(year, month, date);
    }
    *seconds_out = (double)((days_of(year, month, date) - *origin) * 86400 + hour * 3600 + minute * 60 + second) + part;
    return NULL;
}
