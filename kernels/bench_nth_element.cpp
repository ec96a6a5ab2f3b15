/* C++'s std::nth_element, which bench_kernels_topk compares with. Built for benches only; uses headers alone, so it links as C.
 */
#include <algorithm>
#include <cstdint>

struct entry {
    float score;
    int32_t id;
};

static bool before(const entry &x, const entry &y)
{
    return x.score > y.score || (x.score == y.score && x.id < y.id);
}

/* The k best of score[n] by (score descending, id ascending), the same set as topk's, to index[k]: in no order, or sorted. room:
 * [n] entries. */
extern "C" void smg_bench_nth_element(const float *score, uint32_t n, uint32_t k, int sorted, void *room, int32_t *index)
{
    entry *const e = static_cast<entry *>(room);

    for (uint32_t i = 0; i < n; i++)
        e[i] = {score[i], static_cast<int32_t>(i)};
    std::nth_element(e, e + k, e + n, [](const entry &x, const entry &y) { return before(x, y); });
    if (sorted)
        std::sort(e, e + k, [](const entry &x, const entry &y) { return before(x, y); });
    for (uint32_t i = 0; i < k; i++)
        index[i] = e[i].id;
}

/* The k-th best value alone, of floats: less than what topk gives. */
extern "C" float smg_bench_nth_value(const float *score, uint32_t n, uint32_t k, void *room)
{
    float *const x = static_cast<float *>(room);

    std::copy(score, score + n, x);
    std::nth_element(x, x + k - 1, x + n, [](float a, float b) { return a > b; });
    return x[k - 1];
}
