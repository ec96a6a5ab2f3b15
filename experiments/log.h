/* Event and action logs (events.bin, actions.bin): what `smartgen replay` feeds to the core again.
 *
 * Both files start with 8 bytes of magic and a u32 with the size of the struct in memory (event or action) as a version check.
 * events.bin: per step { u16 instance, u16 n, n bytes of struct smg_event }. actions.bin: per step { u32 n_actions, u32 n_items,
 * then per action { u16 n, n bytes of struct smg_action }, then the items }. n cuts trailing zero bytes. Byte order is the
 * machine's (little-endian on every machine this runs on). Steps of one instance are in order; steps of different instances may
 * be interleaved or not. Each file ends with a mark (u16 65535; two u32 4294967295) and the FNV-1a 64 checksum of all between the
 * header and the mark: a log that was cut short or changed is refused.
 */
#ifndef SMG_EXPERIMENTS_LOG_H
#define SMG_EXPERIMENTS_LOG_H

#include <stdio.h>

#include "core/agent.h"
#include "core/observer.h"

#pragma GCC visibility push(default)

/* One of the two files, with the checksum of what went through it. */
struct smg_log_file {
    FILE *f;
    uint64_t hash;
    int error; /* errno of the first write that failed, 0: none */
};

struct smg_log_writer {
    struct smg_log_file events, actions;
};

/* Creates both files (truncating). On error nothing is left open. */
int smg_log_create(const char *events_path, const char *actions_path, struct smg_log_writer *out, struct smg_diag *diag);
/* Appends one step. An observer's step function with arg = the writer. */
int smg_log_step(void *writer, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions);
/* Flushes and closes; SMG_ERR_IO when anything could not be written: diag says why, and names no file. */
int smg_log_close(struct smg_log_writer *w, struct smg_diag *diag);
/* Appends the steps of another pair of files. */
int smg_log_append(struct smg_log_writer *w, const char *events_path, const char *actions_path, struct smg_diag *diag);

struct smg_log_reader {
    struct smg_log_file events, actions;
    uint64_t steps; /* read so far */
};

/* Whether both files are whole and unchanged, by their checksums: before the steps are used, so that a byte that is wrong does
 * not look like an agent that acts otherwise. SMG_ERR_PARSE: not a log, cut short, or damaged; diag names the file. */
int smg_log_check(const char *events_path, const char *actions_path, struct smg_diag *diag);
int smg_log_open(const char *events_path, const char *actions_path, struct smg_log_reader *out, struct smg_diag *diag);
/* Reads the next step into e and actions. *more = 0 at the end of both files. SMG_ERR_PARSE: damaged. */
int smg_log_next(struct smg_log_reader *r, uint16_t *instance, struct smg_event *e, struct smg_actions *actions, int *more);
void smg_log_reader_close(struct smg_log_reader *r);

/* Calls step for every step of a pair of files, until it returns non-zero. diag names the file and the step. */
typedef int (*smg_log_step_fn)(void *arg, uint16_t instance, const struct smg_event *e, const struct smg_actions *actions);
int smg_log_each(const char *events_path, const char *actions_path, smg_log_step_fn step, void *arg, struct smg_diag *diag);

#pragma GCC visibility pop

#endif
