/* Facts that selections should show, measured: on an importance file, and on the generator that made it.
 *
 * Coverage is the share of a request's selections that lie in the best 47.4% of the blocks of the selecting layers: half of all
 * blocks pushed, layers 0 and 1 among them, of Qwen3-14B. An optimum taken from the very decode it is judged on is flattered by
 * sampling noise the more blocks there are; a profile is judged on requests that it was not made from. */
#ifndef SMG_TRACES_IMPORTANCE_FACTS_H
#define SMG_TRACES_IMPORTANCE_FACTS_H

#include <stdio.h>

#include "core/importance.h"
#include "traces/generator.h"
#include "traces/importance_file.h"

#define SMG_FACTS_SHARE  0.474
#define SMG_FACTS_BLOCKS 4u /* block counts that coverage is measured with */
#define SMG_FACTS_STEPS  63u

extern const uint32_t smg_facts_blocks[SMG_FACTS_BLOCKS]; /* 100, 500, 1000, 2000 */

struct smg_generator_facts {
    uint32_t tokens, head_steps; /* of the evaluated requests: prompt; rows a layer */
    double optimum[SMG_FACTS_BLOCKS], profile[SMG_FACTS_BLOCKS], streamingllm[SMG_FACTS_BLOCKS]; /* coverage */
    double sequential, random;            /* coverage, whatever the blocks */
    double overlap;                       /* of consecutive steps, share of k */
    double fresh[SMG_FACTS_STEPS];        /* of a step's entries, those that no earlier step selected */
    double fresh_absent[SMG_FACTS_STEPS]; /* the same among entries outside the optimum's blocks (M = 1000) */
};

/* Evaluates two requests of `tokens` tokens against a profile of six others. */
int smg_generator_facts_measure(const struct smg_generator *g, double cap, uint32_t tokens, struct smg_generator_facts *out);

enum smg_fact_verdict { SMG_FACT_PASS, SMG_FACT_FAIL, SMG_FACT_UNKNOWN };

struct smg_fact {
    const char *id, *claim;
    enum smg_fact_verdict verdict;
    char measured[200];
};

#define SMG_FACTS 10u

/* Judges T1 to T10 on a file. g: NULL when nothing is known of a generator. */
int smg_importance_facts(const struct smg_importance *im, const struct smg_importance_info *info, const struct smg_model *m,
                         const struct smg_generator_facts *g, struct smg_fact out[SMG_FACTS]);

#endif
