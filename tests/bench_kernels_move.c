/* Moving KV entries on the cpu backend beside memcpy of the same bytes on as many threads. Entries of 512 bytes (256 for K, 256
 * for V) out of 1 GiB of blocks. Aim for gathering at random: at least 0.4 of memcpy. */
#include "tests/bench_move.h"

enum { HEADS = 8, HALF = 256, TOKENS = 256 * 1024, BLOCKS = 1000, ROW = TOKENS / 5 };

static const size_t kv_bytes = (size_t)TOKENS * HEADS * 2 * HALF, reply_bytes = (size_t)ROW * HEADS * 2 * HALF;

struct job {
    struct smg_kernels *k;
    struct smg_gather_args g;
    struct smg_scatter_args s;
    struct smg_pack_args p;
    struct smg_unpack_args u;
};

static void run_gather(void *arg)
{
    struct job *j = arg;

    bm_need(!smg_gather(j->k, &j->g, NULL), "gather failed");
}

static void run_scatter(void *arg)
{
    struct job *j = arg;

    bm_need(!smg_scatter(j->k, &j->s, NULL), "scatter failed");
}

static void run_pack(void *arg)
{
    struct job *j = arg;

    bm_need(!smg_pack(j->k, &j->p, NULL), "pack failed");
}

static void run_unpack(void *arg)
{
    struct job *j = arg;

    bm_need(!smg_unpack(j->k, &j->u, NULL), "unpack failed");
}

/* Every 8 bytes say which element they are. */
static uint64_t element(uint32_t token, uint32_t head, int v, uint32_t i)
{
    return (((uint64_t)token * HEADS + head) * 2 + (uint64_t)v) * (HALF / 8) + i;
}

static void fill_rows(uint64_t *k, uint64_t *v)
{
    for (uint32_t t = 0; t < TOKENS; t++)
        for (uint32_t h = 0; h < HEADS; h++)
            for (uint32_t i = 0; i < HALF / 8; i++) {
                k[((size_t)t * HEADS + h) * (HALF / 8) + i] = element(t, h, 0, i);
                v[((size_t)t * HEADS + h) * (HALF / 8) + i] = element(t, h, 1, i);
            }
}

/* Different ids in no order. */
static int32_t *random_ids(void)
{
    int32_t *all = bm_room(TOKENS * sizeof *all), *ids = bm_room((size_t)ROW * HEADS * sizeof *ids);
    uint32_t seed = 5;

    for (int32_t i = 0; i < TOKENS; i++)
        all[i] = i;
    for (uint32_t h = 0; h < HEADS; h++) {
        for (uint32_t i = 0; i < ROW; i++) {
            uint32_t j = i + bm_random(&seed) % (TOKENS - i);
            int32_t t = all[i];
            all[i] = all[j];
            all[j] = t;
            ids[h * ROW + i] = all[i];
        }
    }
    free(all);
    return ids;
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void check_reply(const int32_t *ids, const uint64_t *reply)
{
    for (uint32_t h = 0; h < HEADS; h++)
        for (uint32_t j = 0; j < ROW; j++)
            for (uint32_t i = 0; i < HALF / 8; i++) {
                const size_t at = ((size_t)h * ROW + j) * (HALF / 8) + i;
                bm_need(reply[at] == element((uint32_t)ids[h * ROW + j], h, 0, i) &&
                            reply[at + reply_bytes / 16] == element((uint32_t)ids[h * ROW + j], h, 1, i),
                        "wrong reply");
            }
}

int main(void)
{
    uint64_t *k = bm_room(kv_bytes / 2), *v = bm_room(kv_bytes / 2);
    char *kv = bm_room(kv_bytes), *reply = bm_room(reply_bytes), *landed = bm_room(reply_bytes);
    int32_t *ids = random_ids(), *sorted = bm_room((size_t)ROW * HEADS * sizeof *sorted);
    uint32_t start[BLOCKS + 1], rows[HEADS];
    uint64_t at[HEADS];
    struct job best = {.k = bm_open("cpu", NULL)}, ordered;
    struct bm_copy copy = {best.k->threads, reply, kv, reply_bytes}, copy_all = {best.k->threads, kv, (char *)k, kv_bytes / 2};

    for (uint32_t m = 0; m <= BLOCKS; m++)
        start[m] = (uint32_t)((uint64_t)m * TOKENS / BLOCKS);
    for (uint32_t h = 0; h < HEADS; h++) {
        rows[h] = ROW;
        at[h] = (uint64_t)h * ROW;
    }
    memcpy(sorted, ids, (size_t)ROW * HEADS * sizeof *sorted);
    for (uint32_t h = 0; h < HEADS; h++)
        qsort(sorted + h * ROW, ROW, sizeof *sorted, by_id);
    best.p = (struct smg_pack_args){{TOKENS, BLOCKS, HEADS, HALF, start}, k, v, kv};
    best.u = (struct smg_unpack_args){best.p.blocks, kv, k, v};
    best.g = (struct smg_gather_args){best.p.blocks, kv, ids, at, rows, ROW, at, reply, reply + reply_bytes / 2};
    best.s = (struct smg_scatter_args){
        HEADS, HALF, ROW, rows, at, at, reply, reply + reply_bytes / 2, landed, landed + reply_bytes / 2};
    ordered = best;
    ordered.g.ids = sorted;
    struct bm_contender some[] = {{"memcpy of the reply", bm_copy_run, &copy, 0, 0},
                                  {"gather, ids in no order", run_gather, &best, 0, 0},
                                  {"gather, ids ascending", run_gather, &ordered, 0, 0},
                                  {"scatter", run_scatter, &best, 0, 0}},
                        all[] = {{"memcpy of K", bm_copy_run, &copy_all, 0, 0},
                                 {"pack, K and V", run_pack, &best, 0, 0},
                                 {"unpack, K and V", run_unpack, &best, 0, 0}};

    fill_rows(k, v);
    run_pack(&best);
    run_gather(&ordered);
    check_reply(sorted, (uint64_t *)reply);
    run_gather(&best);
    check_reply(ids, (uint64_t *)reply);
    run_scatter(&best);
    bm_need(!memcmp(reply, landed, reply_bytes), "wrong rows");
    memset(k, 0, kv_bytes / 2);
    memset(v, 0, kv_bytes / 2);
    run_unpack(&best);
    for (size_t i = 0; i < kv_bytes / 16; i += 61)
        bm_need(k[i] == element((uint32_t)(i / (HALF / 8) / HEADS), (uint32_t)(i / (HALF / 8) % HEADS), 0, i % (HALF / 8)) &&
                    v[i] == k[i] + HALF / 8,
                "wrong rows after unpacking");

    printf("%s; %.0f MiB of blocks, %.0f MiB of reply, GB/s counts bytes copied once\n", smg_kernels_where(best.k),
           (double)kv_bytes / (1 << 20), (double)reply_bytes / (1 << 20));
    bm_race(some, 4);
    bm_print(some, 4, "entry", (double)reply_bytes, (double)ROW * HEADS, (const char *[]){NULL, ">= 0.40", NULL, NULL});
    bm_race(all, 3);
    all[0].ns *= 2; /* it copied half as many bytes */
    all[0].cpu_ns *= 2;
    bm_print(all, 3, "entry", (double)kv_bytes, (double)TOKENS * HEADS, (const char *[]){NULL, NULL, NULL});
    smg_kernels_close(best.k);
    free(k);
    free(v);
    free(kv);
    free(reply);
    free(landed);
    free(ids);
    free(sorted);
    return 0;
}
