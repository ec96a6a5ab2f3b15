/* Exact top-k on the cpu backend beside C++'s std::nth_element on the same rows, both on one thread; k is a fifth of the row.
 * Aim: at least as fast. nth_element of (score, id) finds the same set as topk in order of id; of values alone it finds less. */
#include "tests/bench_move.h"

void smg_bench_nth_element(const float *score, uint32_t n, uint32_t k, int sorted, void *room, int32_t *index)
    __attribute__((weak));
float smg_bench_nth_value(const float *score, uint32_t n, uint32_t k, void *room) __attribute__((weak));

struct job {
    struct smg_kernels *k;
    struct smg_topk_args a;
    void *room;
    int32_t *found;
};

static void run_topk(void *arg)
{
    struct job *j = arg;

    bm_need(!smg_topk(j->k, &j->a, NULL), "topk failed");
}

static void run_nth(void *arg)
{
    struct job *j = arg;

    for (uint32_t r = 0; r < j->a.rows; r++)
        smg_bench_nth_element(j->a.score + (size_t)r * j->a.n, j->a.n, j->a.k, j->a.order == SMG_TOPK_BY_SCORE, j->room,
                              j->found + (size_t)r * j->a.k);
}

static void run_value(void *arg)
{
    struct job *j = arg;

    for (uint32_t r = 0; r < j->a.rows; r++)
        j->found[r] = (int32_t)smg_bench_nth_value(j->a.score + (size_t)r * j->a.n, j->a.n, j->a.k, j->room);
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static float normal(uint32_t *seed)
{
    float sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (float)(bm_random(seed) >> 8) / 16777216.0f;
    return sum - 6;
}

/* Both found the same: as sets in order of id, and entry by entry in order of score. */
static void check(struct job *j)
{
    run_nth(j);
    run_topk(j);
    for (uint32_t r = 0; r < j->a.rows && j->a.order == SMG_TOPK_BY_INDEX; r++)
        qsort(j->found + (size_t)r * j->a.k, j->a.k, sizeof *j->found, by_id);
    bm_need(!memcmp(j->found, j->a.index, (size_t)j->a.rows * j->a.k * sizeof *j->found), "wrong ids");
}

static struct job make_job(struct smg_kernels *k, const float *score, uint32_t rows, uint32_t n, enum smg_topk_order order)
{
    const size_t cells = (size_t)rows * (n / 5) * sizeof(int32_t);

    return (struct job){.k = k,
                        .room = bm_room((size_t)n * 8),
                        .found = bm_room(cells),
                        .a = {.rows = rows,
                              .n = n,
                              .k = n / 5,
                              .order = order,
                              .score = score,
                              .row_group = 1,
                              .index = bm_room(cells),
                              .length = bm_room(rows * sizeof(uint32_t))}};
}

static void free_job(struct job *j)
{
    free(j->room);
    free(j->found);
    free(j->a.index);
    free(j->a.length);
}

static void race(struct smg_kernels *best, struct smg_kernels *base, const char *what, const float *score, uint32_t rows,
                 uint32_t n)
{
    struct job job[] = {make_job(best, score, rows, n, SMG_TOPK_BY_INDEX), make_job(base, score, rows, n, SMG_TOPK_BY_INDEX),
                        make_job(best, score, rows, n, SMG_TOPK_BY_SCORE), make_job(base, score, rows, n, SMG_TOPK_BY_SCORE)};
    struct bm_contender c[] = {{"", run_value, &job[0], 0, 0}, {"", run_nth, &job[0], 0, 0}, {"", run_topk, &job[0], 0, 0},
                               {"", run_topk, &job[1], 0, 0},  {"", run_nth, &job[2], 0, 0}, {"", run_topk, &job[2], 0, 0},
                               {"", run_topk, &job[3], 0, 0}};

    for (int i = 0; i < 4; i++)
        check(&job[i]);
    bm_race(c, 7);
    printf("%6u %5u  %-12s", n, rows, what);
    for (int i = 0; i < 7; i++)
        printf(" %8.1f", c[i].cpu_ns / rows / 1e3);
    printf("  %8.1f %8.1f %8.1f %8.1f\n", c[1].cpu_ns / c[2].cpu_ns, c[1].cpu_ns / c[3].cpu_ns, c[4].cpu_ns / c[5].cpu_ns,
           c[4].cpu_ns / c[6].cpu_ns);
    for (int i = 0; i < 4; i++)
        free_job(&job[i]);
}

int main(void)
{
    static const uint32_t size[][2] = {{1024, 64}, {8192, 64}, {49152, 8}};
    static const char *const kinds[] = {"normal", "all equal", "ascending", "descending", "softmax"};
    const struct smg_kernels_options one = {.threads = 1}, one_base = {.threads = 1, .isa = "base"};
    struct smg_kernels *best, *base;
    struct smg_diag diag;
    float *score = bm_room(64 * 8192 * sizeof *score);
    uint32_t seed = 3;

    if (!smg_bench_nth_element) {
        printf("skip: built without a C++ compiler, so there is no std::nth_element to compare with\n");
        free(score);
        return 0;
    }
    bm_need(!smg_kernels_open("cpu", &one, &best, &diag) && !smg_kernels_open("cpu", &one_base, &base, &diag), diag.text);
    printf("%s, and base; microseconds a row, k = n / 5; aim: ratios of at least 1\n", smg_kernels_where(best));
    printf("%6s %5s  %-12s %8s %8s %8s %8s %8s %8s %8s  %s\n", "n", "rows", "scores", "nth val", "nth el", "by index", "base",
           "nth+sort", "by score", "base", "nth el / by index, base; nth+sort / by score, base");
    for (int s = 0; s < 3; s++) {
        for (int kind = 0; kind < 5; kind++) {
            const uint32_t n = size[s][0], rows = size[s][1];
            for (size_t i = 0; i < (size_t)n * rows; i++) {
                const float x = normal(&seed);
                score[i] = kind == 1   ? 0.5f
                           : kind == 2 ? (float)(i % n)
                           : kind == 3 ? -(float)(i % n)
                           : kind == 4 ? 1.0f / (1 << (int)(x * x * 2)) / (float)(1 + i % 97)
                                       : x;
            }
            race(best, base, kinds[kind], score, rows, n);
        }
    }
    smg_kernels_close(best);
    smg_kernels_close(base);
    free(score);
    return 0;
}
