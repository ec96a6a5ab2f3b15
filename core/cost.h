/* Cost algebra: small value types for time. Everything returns seconds. */
#ifndef SMG_CORE_COST_H
#define SMG_CORE_COST_H

#include <stdint.h>

#include "core/world.h"

#pragma GCC visibility push(default)

/* f(bytes, messages) = latency + bytes/bandwidth + messages * per_message. */
struct smg_cost {
    double latency_s;
    double Bps; /* > 0, INFINITY: free */
    double per_message_s;
};

struct smg_cost smg_cost_make(double latency_s, double Bps, double per_message_s);
double smg_cost_apply(const struct smg_cost *c, double bytes, double messages);
/* One after the other: latencies and per-message costs add, 1/bandwidths add. */
struct smg_cost smg_cost_series(const struct smg_cost *a, const struct smg_cost *b);
/* Bytes that occupy a link of Bps as long as the transfer does when it is bound by posting: max(bytes, messages * post_cost *
 * Bps). */
double smg_cost_wire_bytes(double bytes, double messages, double post_cost_s, double Bps);

/* Roofline: max(flop / flops, bytes / Bps). */
double smg_cost_roofline(double flop, double flops, double bytes, double Bps);

/* Prefill of a request: smg_model_prefill_flop / effective rate, divided by tp. */
double smg_cost_prefill_s(const struct smg_world *w, const struct smg_request_spec *r);
/* One layer's share of it (all layers alike). */
double smg_cost_prefill_layer_s(const struct smg_world *w, const struct smg_request_spec *r);
/* Attention of one decode layer over `entries` KV entries: overhead + bytes / memory rate. */
double smg_cost_attention_s(const struct smg_world *w, uint64_t entries);
/* FFN and projections of one decode layer for a batch; last: the output head is added. */
double smg_cost_ffn_s(const struct smg_world *w, uint32_t batch, int last);
/* Selector scores of one layer over `tokens` tokens of the batch: a fixed part, and metadata at the rate that was measured, else
 * at memory rate. 0 where nothing is selected. */
double smg_cost_select_s(const struct smg_world *w, uint64_t tokens);
/* Split of `entries` index entries on the decode GPU, SMG_SPLIT_ENTRY_BYTES each (the index read and written back, the mask
 * read): likewise. 0 entries: 0. */
enum { SMG_SPLIT_ENTRY_BYTES = 9 };
double smg_cost_split_s(const struct smg_world *w, double entries);
/* Bytes of prompt-side selector metadata per token and selecting layer: infinigen 2*H*floor(partial_ratio*d), hata H*(bits/8 +
 * 2), quest 2*2*d*H/16, oracle 0. */
uint64_t smg_metadata_token_bytes(const struct smg_world *w);
/* One decode iteration of n requests if nothing had to be moved: attention and feed-forward of all layers, and of select and
 * split what these do not hide. full[i]: request i is in mode full, and is not split. */
double smg_cost_decode_s(const struct smg_world *w, const uint32_t *prompt_tokens, const int *full, size_t n);

/* Eq. 2. kr_raw = floor(total (L-1)/L * Tp/Tt) (M (L-1) Tp/Tt when every layer has M blocks), clipped to [dense, total]. window:
 * the bytes of metadata are subtracted from the window first. */
struct smg_budget_result {
    double tp_s, tt_s, window_s;
    uint64_t metadata_bytes, kv_bytes;
    uint32_t kr_raw, kr_blocks, total_blocks, dense_blocks;
    int full; /* every block fits: mode full */
};
/* tt_s: time to send the whole KV cache at the rate this request can expect. */
uint32_t smg_kr_raw(uint32_t total_blocks, uint32_t layers, double tp_s, double tt_s);
uint32_t smg_kr_clip(uint32_t raw, uint32_t dense_blocks, uint32_t total_blocks);
/* The whole decision for a request that shares the decode link with `sharers` requests in transition (itself included).
 * decode_node: whose link. */
void smg_budget_decide(const struct smg_world *w, const struct smg_request_spec *r, uint32_t decode_node, uint32_t sharers,
                       struct smg_budget_result *out);

#pragma GCC visibility pop

#endif
