/* What a driver counted with its own eyes, and the conservation laws that records and counts must satisfy (docs/records.md). */
#ifndef SMG_CORE_STATS_H
#define SMG_CORE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "core/record.h"
#include "core/world.h"

#pragma GCC visibility push(default)

enum smg_path { SMG_PATH_METADATA, SMG_PATH_PUSH, SMG_PATH_SPECULATIVE, SMG_PATH_ON_DEMAND, SMG_PATH_CONTROL, SMG_PATHS };

const char *smg_path_name(enum smg_path p);

struct smg_run_stats {
    uint64_t sent_bytes[SMG_PATHS], received_bytes[SMG_PATHS];
    uint64_t messages[SMG_PATHS];
    uint64_t mask_bytes;
    uint64_t *duplicate_bytes;       /* [n_requests], owned */
    uint64_t *digest;                /* [n_requests] of the entries as gathered for attention (real engine), 0: none, owned */
    uint32_t n_requests;
    uint64_t blocks_written;         /* over all requests */
    uint64_t blocks_rewritten;       /* must be 0 */
    uint64_t blocks_unknown;         /* written to a request that has no memory: must be 0 */
    uint64_t invalid_entries;        /* used before they were valid: must be 0 */
    uint64_t attention_outputs;      /* computed by kernels: (request, step, layer); 0: none */
    uint64_t attention_digest;       /* of their bits, whatever their order */
    double attention_error;          /* largest difference from the reference, over the sizes of what is summed up */
    double attention_relative;       /* the same, over the largest value of its query head */
    uint64_t events, actions;
    double end_s;                    /* clock when nothing was pending any more */
};

int smg_run_stats_init(struct smg_run_stats *s, uint32_t n_requests);
void smg_run_stats_free(struct smg_run_stats *s);
/* Adds b to a (the same n_requests). */
void smg_run_stats_add(struct smg_run_stats *a, const struct smg_run_stats *b);

/* One conservation law and whether it holds. */
struct smg_law {
    const char *name;
    int holds;
    double left, right;              /* the two sides */
};

enum { SMG_LAWS = 10 };

/* Checks every law; returns SMG_OK or SMG_ERR_CONSERVATION. laws[SMG_LAWS] is filled, *n_out entries. */
int smg_conservation_check(const struct smg_records *r, const struct smg_run_stats *s, struct smg_law laws[SMG_LAWS],
                           size_t *n_out);

#pragma GCC visibility pop

#endif
