/* Split with reordering on the cpu backend beside memcpy of the same bytes (index in, index out) on as many threads. Aim: at
 * least 0.4 of memcpy, working set 256 MiB or more. The masks (a byte per token) come on top and are not counted. */
#include "core/split.h"
#include "tests/bench_move.h"

enum { HEADS = 8, TOKENS = 48 * 1024, K = TOKENS / 5, REQUESTS = 448, ROWS = REQUESTS * HEADS };

static const size_t entries = (size_t)ROWS * K;

struct job {
    struct smg_kernels *k;
    struct smg_split_args a;
};

static void run(void *arg)
{
    struct job *j = arg;

    bm_need(!smg_split(j->k, &j->a, NULL), "split failed");
}

/* Different ids in no order, as a ranking by score has them. */
static void fill_index(uint32_t *seed, int32_t *index)
{
    int32_t *all = bm_room(TOKENS * sizeof *all);

    for (int32_t i = 0; i < TOKENS; i++)
        all[i] = i;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t i = 0; i < K; i++) {
            uint32_t j = i + bm_random(seed) % (TOKENS - i);
            int32_t t = all[i];
            all[i] = all[j];
            all[j] = t;
            index[(size_t)r * K + i] = all[i];
        }
    }
    free(all);
}

static void check(const struct smg_split_args *a)
{
    int32_t expected[K];

    for (uint32_t r = 0; r < ROWS; r += 97) {
        uint32_t remote, local;
        smg_split_row(a->index + (size_t)r * K, K, a->mask + (size_t)(r / HEADS) * TOKENS, TOKENS, NULL, a->reorder, expected,
                      NULL, &remote, NULL, &local);
        bm_need(a->n_remote[r] == remote && a->n_local[r] == local &&
                    !memcmp(expected, a->out_index + (size_t)r * K, sizeof expected),
                "wrong result");
    }
}

int main(void)
{
    int32_t *index = bm_room(entries * sizeof *index), *out = bm_room(entries * sizeof *out);
    int8_t *mask = bm_room((size_t)REQUESTS * TOKENS);
    struct job best = {.k = bm_open("cpu", NULL)}, base = {.k = bm_open("cpu", "base")}, keep;
    struct bm_copy copy = {best.k->threads, (char *)out, (char *)index, entries * sizeof *index};
    uint32_t seed = 7;

    fill_index(&seed, index);
    for (size_t i = 0; i < (size_t)REQUESTS * TOKENS; i++)
        mask[i] = (int8_t)(1 + (bm_random(&seed) % 100 < 85)); /* 85% remote */
    best.a = (struct smg_split_args){.rows = ROWS,
                                     .heads = HEADS,
                                     .k = K,
                                     .width = TOKENS,
                                     .index = index,
                                     .mask = mask,
                                     .reorder = 1,
                                     .out_index = out,
                                     .n_remote = bm_room(ROWS * 4),
                                     .n_local = bm_room(ROWS * 4)};
    base.a = best.a;
    keep = best;
    keep.a.reorder = 0;
    struct bm_contender c[] = {{"memcpy", bm_copy_run, &copy, 0, 0},
                               {"split + reorder, best", run, &best, 0, 0},
                               {"split + reorder, base", run, &base, 0, 0},
                               {"split in input order, best", run, &keep, 0, 0}};
    for (int i = 1; i < 4; i++) {
        run(c[i].arg);
        check(&((struct job *)c[i].arg)->a);
    }
    bm_race(c, 4);
    printf("%s; %d rows of %d ids, %.0f MiB in and out, masks %.0f MiB\n", smg_kernels_where(best.k), ROWS, K,
           (double)entries * 8 / (1 << 20), (double)REQUESTS * TOKENS / (1 << 20));
    bm_print(c, 4, "id", (double)entries * 8, (double)entries, (const char *[]){NULL, ">= 0.40", NULL, NULL});
    smg_kernels_close(best.k);
    smg_kernels_close(base.k);
    free(index);
    free(out);
    free(mask);
    free(best.a.n_remote);
    free(best.a.n_local);
    return 0;
}
