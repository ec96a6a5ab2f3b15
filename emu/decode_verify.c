/* What a decode instance checks: every entry that attention reads, attention itself where kernels compute it, and what lies in
 * the pool at the end. */
#include <math.h>
#include <string.h>

#include "core/plugin.h"
#include "core/reserve.h"
#include "emu/decode_priv.h"

static int entry_right(struct smg_process *p, const struct smg_decode_data *d, uint32_t request, uint32_t h, uint32_t token,
                       struct smg_place at)
{
    uint64_t half = d->layout.half_bytes;

    return smg_process_half_is(p, request, d->layer, h, token, 0, half, at.k) &&
           smg_process_half_is(p, request, d->layer, h, token, 1, half, at.v);
}

static int verify_rows(struct smg_process *p, struct smg_decode_data *d, uint32_t request)
{
    int check = p->world->scenario.emu.verify == SMG_VERIFY_ALL;

    for (uint32_t h = 0; h < d->layout.heads; h++) {
        for (uint32_t j = 0; j < d->row[h]; j++) {
            uint32_t token = (uint32_t)d->ids[(size_t)h * d->row_cap + j];
            struct smg_place at = smg_in_rows(p, d, d->device, h, j);
            p->stats.digest[request] += smg_digest_entry(d->layer, h, token, at.k, at.v, d->layout.half_bytes);
            if (!check || entry_right(p, d, request, h, token, at))
                continue;
            p->stats.invalid_entries++;
            return smg_process_fail(
                p, SMG_ERR_VERIFY,
                "request %u, step %u: the entry of layer %u, KV head %u, token %u is not what prefill computed", request, d->step,
                d->layer, h, token);
        }
    }
    return SMG_OK;
}

/* Attention itself, held against the reference over entries made anew. */
static int attend(struct smg_process *p, struct smg_decode_data *d, uint32_t request)
{
    struct smg_compute_rows rows = {smg_process_at(p, d->device), d->row_cap, d->ids, d->row};
    int check = p->world->scenario.emu.verify == SMG_VERIFY_ALL;
    uint64_t digest = 0;
    struct smg_compute_error error = {0, 0};
    int status = smg_compute_attention(p->compute, &d->layout, request, d->step, d->layer, &rows, check, &digest, &error);

    if (status)
        return smg_process_compute(p, request, status);
    p->stats.attention_outputs++;
    p->stats.attention_digest += digest;
    p->stats.attention_error = fmax(p->stats.attention_error, error.of_terms);
    p->stats.attention_relative = fmax(p->stats.attention_relative, error.of_head);
    if (error.of_terms <= SMG_COMPUTE_ROUNDING)
        return SMG_OK;
    return smg_process_fail(p, SMG_ERR_VERIFY,
                            "request %u, step %u, layer %u: attention is off by %.3g of its terms, %.2g is rounding", request,
                            d->step, d->layer, error.of_terms, SMG_COMPUTE_ROUNDING);
}

/* Attention reads the rows as gathered: digest them, and check each entry. */
int smg_decode_attention(struct smg_process *p, const struct smg_action *a)
{
    int status = SMG_OK;

    for (uint32_t r = 0; r < p->world->n_requests && !status; r++) {
        struct smg_decode_data *d = p->decode[r];
        if (!d || !d->split_valid || d->layer != a->layer_lo || p->dropped[r])
            continue;
        status = verify_rows(p, d, r);
        if (!status && p->compute)
            status = attend(p, d, r);
    }
    return status;
}

/* Bytes of one block as computed against what lies in the pool. */
static int block_right(struct smg_process *p, struct smg_decode_data *d, uint32_t request, uint32_t block)
{
    uint32_t lo, hi;

    smg_grid_block(&d->layout.grid, d->layer, block, &lo, &hi);
    for (uint32_t t = lo; t < hi; t++)
        for (uint32_t h = 0; h < d->layout.heads; h++)
            if (!entry_right(p, d, request, h, t, smg_in_pool(p, d, h, t)))
                return 0;
    return 1;
}

/* The NIC writes no ledger: a block has landed when the mask of its tokens says so. */
static int block_landed(const struct smg_decode_data *d, uint32_t layer, uint32_t block)
{
    const int8_t *mask = smg_ledger_mask(d->ledger, layer);
    uint32_t lo, hi;

    smg_grid_block(&d->layout.grid, layer, block, &lo, &hi);
    while (lo < hi && mask[lo] == SMG_MASK_LOCAL)
        lo++;
    return lo == hi;
}

/* Which blocks have landed follows from the mask; which path they came by from the ranking. */
static int account_blocks(struct smg_process *p, struct smg_decode_data *d, uint32_t request, const struct smg_rank *rank,
                          uint32_t kr_blocks)
{
    const struct smg_grid *g = &d->layout.grid;
    int status = SMG_OK;

    for (uint32_t l = 0; l < p->world->model.layers && !status; l++) {
        d->layer = (uint16_t)l;
        for (uint32_t m = smg_grid_first(g, l); m < g->blocks && !status; m++) {
            int pushed = rank->position[(size_t)l * rank->blocks + m] < kr_blocks;
            if (!block_landed(d, l, m))
                continue;
            p->stats.blocks_written++;
            p->stats.received_bytes[pushed ? SMG_PATH_PUSH : SMG_PATH_SPECULATIVE] += smg_grid_range_bytes(g, l, m, 1);
            p->stats.duplicate_bytes[request] += smg_ledger_kept_in(d->ledger, l, m, 1) * 2 * d->layout.half_bytes;
            if (p->world->scenario.emu.verify == SMG_VERIFY_ALL && !block_right(p, d, request, m))
                status = smg_process_fail(p, SMG_ERR_VERIFY, "request %u: block %u of layer %u is not what prefill computed",
                                          request, m, l);
        }
    }
    return status;
}

static int account_metadata(struct smg_process *p, struct smg_decode_data *d, uint32_t request, int full)
{
    uint64_t bytes = d->layout.grid.tokens * d->layout.metadata_token_bytes;
    uint8_t *expected = smg_store_take_raw(&p->store, bytes);
    int status = expected ? SMG_OK : SMG_ERR_NOMEM;

    for (uint32_t l = 0; l < p->world->model.layers && bytes && p->features.metadata && !full && !status; l++) {
        if (!smg_model_layer_selects(&p->world->model, l))
            continue;
        if (p->compute)
            status = smg_process_compute(p, request, smg_compute_metadata_expected(p->compute, &d->layout, request, l, expected));
        else
            smg_content_metadata(p->world->scenario.seed, request, l, 0, bytes, expected);
        if (!status && memcmp(expected, smg_process_at(p, d->metadata + smg_layout_metadata(&d->layout, l)), bytes))
            status = smg_process_fail(p, SMG_ERR_VERIFY, "request %u: metadata of layer %u is not what prefill sent", request, l);
        p->stats.received_bytes[SMG_PATH_METADATA] += bytes;
    }
    smg_store_give(&p->store, expected);
    return status;
}

int smg_decode_close(struct smg_process *p, uint32_t request)
{
    struct smg_decode_data *d = p->decode[request];
    const struct smg_rank_type *type = smg_world_ranking(p->world, p->features.ranking);
    struct smg_rank_input in = {&d->layout.grid, p->world->importance, p->world->scenario.seed, request};
    struct smg_rank *rank = NULL;
    int status = p->dropped[request] ? SMG_OK : smg_rank_create_in(&p->store, type, &in, &rank);

    if (p->dropped[request]) { /* what a request that failed holds may be anything */
        smg_decode_free(p, request);
        return SMG_OK;
    }
    if (!status)
        status = account_blocks(p, d, request, rank, p->kr_blocks[request]);
    if (!status && p->handed_off[request]) /* a request that failed before may hold anything */
        status = account_metadata(p, d, request, p->full[request]);
    smg_rank_unref(rank);
    smg_decode_free(p, request);
    return status;
}
