/* Two runs of the same requests side by side: times, bytes and tokens of each, and how far the first is from the second. */
#ifndef SMG_EXPERIMENTS_COMPARE_H
#define SMG_EXPERIMENTS_COMPARE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* What is compared. The transfer part of TTST is TTST less the computing of the iteration that makes the second token
 * (smg_cost_decode_s over the requests that are in the batch then): waiting for the hand-off, the batch and the lanes, and
 * messages. */
enum smg_compared {
    SMG_COMPARE_TTFT,
    SMG_COMPARE_TTST,
    SMG_COMPARE_TRANSFER,
    SMG_COMPARE_TBT,
    SMG_COMPARE_METADATA,
    SMG_COMPARE_PROACTIVE,
    SMG_COMPARE_ON_DEMAND,
    SMG_COMPARE_SPECULATIVE,
    SMG_COMPARE_GAP, /* of one token, where both runs recorded tokens */
    SMG_COMPARED
};

/* "ttft_s", "transfer_s", ... as in records; and its unit. */
const char *smg_compared_name(enum smg_compared what);
const char *smg_compared_unit(enum smg_compared what);

struct smg_compare_row {
    uint32_t request, token; /* token 0: of the whole request */
    enum smg_compared what;
    double a, b;
    double error; /* (a - b) / b; 0 where both are 0, infinite where only b is, or where one of the runs has no such value */
};

/* Over the rows of one kind whose error is finite. */
struct smg_compare_summary {
    size_t rows;            /* all of the kind */
    size_t n;               /* with a finite error */
    double mean, max, bias; /* of |error|, of |error|, of error; NAN when n is 0 */
};

struct smg_comparison {
    char name[2][512]; /* "DIR (sim, native)" */
    char synthetic[2][96]; /* what was generated for each: "importance, selection", "" nothing */
    char differs[512];     /* scenario keys and settings in which the runs differ, "" none */
    struct smg_compare_row *row;
    size_t n, cap;
    struct smg_compare_summary summary[SMG_COMPARED];
    double largest; /* of all |error|; infinite: a value is missing or should be 0 */
};

/* Reads two record folders. SMG_ERR_INVALID: they are of different requests, model, seed or scheme; SMG_ERR_PARSE, SMG_ERR_IO: a
 * file cannot be used. Messages name it. On error *out is zeroed. */
int smg_compare(const char *dir_a, const char *dir_b, struct smg_comparison *out, struct smg_diag *diag);
void smg_comparison_free(struct smg_comparison *c);

void smg_compare_print(const struct smg_comparison *c, FILE *out);
/* NULL: out of memory. */
json_t *smg_compare_json(const struct smg_comparison *c);
/* First line of the CSV file, without its end. */
extern const char smg_compare_header[];
void smg_compare_csv(const struct smg_comparison *c, FILE *out);

#endif
