#!/bin/bash
# emu.compute: kernels. Attention over real tensors: the same outputs whatever the scheme and the path by which entries came, bit for bit
# where rows keep their order; every output is held against the reference (emu.verify: all). Planted bugs are found.
. "$top_srcdir/tests/e2e/lib.sh"

has_emu || skip_all "this program is built without libfabric, or its tcp provider does not open here: smartgen emu cannot run"

small=$top_srcdir/tests/e2e/small.yaml
base="emu.compute=kernels emu.time_scale=0.1 emu.link=free workload.requests=2"
rounding=1.8e-7 # of the terms that a channel is summed from (emu/compute_error.c)
of_head=1e-5    # of a query head's largest value: heads of 64 channels, where terms cancel to a quarter at most

# attend NAME KEY=VALUE...: a run that must be sound and replay; $digest of entries, $bits of outputs.
attend() {
    local name=$1 arguments=() set
    shift
    for set in "$@"; do
        arguments+=(--set "$set")
    done
    must "$name" 0 emu "$small" "${arguments[@]}" -o "$work/$name"
    holds "$name" "$work/$name"
    replayed "$name" "$work/$name"
    digest=$(json_value "$work/$name/summary.json" digest)
    bits=$(attention_value "$work/$name/summary.json" digest)
    error=$(attention_value "$work/$name/summary.json" largest_error)
    outputs=$(attention_value "$work/$name/summary.json" outputs)
    relative=$(attention_value "$work/$name/summary.json" largest_relative)
    [ "${outputs:-0}" -gt 0 ] || fail "$name: no attention output" "$work/$name/summary.json"
    awk -v e="$error" -v most="$rounding" 'BEGIN { exit !(e >= 0 && e <= most) }' || fail "$name: outputs are off by $error of the terms"
    awk -v e="$relative" -v most="$of_head" 'BEGIN { exit !(e >= 0 && e <= most) }' || fail "$name: outputs are off by $relative of a head"
    rm -rf "${work:?}/$name/events.bin"
}

# A value inside "attention".
attention_value() {
    awk -v key="\"$2\":" '/"attention":/ { on = 1 } on && $1 == key { gsub(/[",]/, "", $2); print $2; exit }' "$1"
}

# same NAME KEY=VALUE...: entries and bits of scheme full.
same() {
    local name=$1
    attend "$@"
    [ "$digest" = "$entries" ] || fail "$name: read other entries than scheme full: $digest, not $entries"
    [ "$bits" = "$whole" ] || fail "$name: the order is kept, the bits are not: $bits, not $whole"
    ok "$name: $outputs outputs, bits $bits, error $error, $relative"
}

# close NAME KEY=VALUE...: entries of scheme full; outputs within rounding (attend has seen to that).
close() {
    local name=$1
    attend "$@"
    [ "$digest" = "$entries" ] || fail "$name: read other entries than scheme full: $digest, not $entries"
    ok "$name: $outputs outputs, entries $digest, error $error, $relative"
}

for selector in infinigen hata quest oracle; do
    s="$base selector=$selector"
    attend "$selector-full" $s scheme=full
    entries=$digest whole=$bits
    ok "$selector-full: $outputs outputs, entries $digest, bits $bits, error $error, $relative"
    same "$selector-partial" $s scheme=partial proactive.kr_blocks=100
    same "$selector-in-order" $s proactive.kr_blocks=100 on_demand.reorder=false
    close "$selector-smartgen" $s proactive.kr_blocks=100
done

# ---- Each path on and off ----
s="$base selector=infinigen"
attend reference $s scheme=full emu.backend=reference
entries=$digest
attend full $s scheme=full
[ "$digest" = "$entries" ] || fail "backends cpu and reference select other entries: $digest, $entries"
whole=$bits
ok "backends cpu and reference select the same entries: $digest"
close no-proactive $s proactive.enabled=false
close serial $s on_demand.parallel=false proactive.kr_blocks=100
close no-speculation $s speculative.enabled=false proactive.kr_blocks=100
close no-reuse $s on_demand.reuse=false proactive.kr_blocks=100
close no-gdr $s gdr=false proactive.kr_blocks=100
same no-gdr-in-order $s gdr=false proactive.kr_blocks=100 on_demand.reorder=false on_demand.reuse=false
close two-decode $s decode.gpus_per_node=2 proactive.kr_blocks=100
close fenced $s emu.write_order=fence proactive.kr_blocks=100
attend streamingllm-all $s scheme=streamingllm proactive.kr_blocks=16776960
ok "streamingllm attends to all where everything is pushed: $outputs outputs, error $error, $relative"
attend streamingllm $s scheme=streamingllm
ok "streamingllm attends to what is present: $outputs outputs, error $error, $relative"

# ---- Other geometries ----
attend wide-threshold $s selection.alpha=1000 selection.cap=0.5 proactive.kr_blocks=100
ok "alpha beyond all scores: $outputs outputs, error $error, $relative"
attend few-bits $base selector=hata selection.hash_bits=64 proactive.kr_blocks=100
ok "64 bits: $outputs outputs, error $error, $relative"

# ---- Narrow heads: scores are large there, and channels often cancel ----
# narrow HEAD_DIM: $model has such heads.
narrow() {
    model=$work/narrow-$1.json
    sed "s/\"head_dim\": 64/\"head_dim\": $1/; s/\"hidden_size\": 512/\"hidden_size\": $((16 * $1))/" \
        "$top_srcdir/experiments/emu-small/config.json" >"$model"
    grep -q "\"head_dim\": $1," "$model" || fail "no head_dim in the model's file" "$model"
}

of_head=1e-4 # terms cancel to a tenth there
for case in "6 hata" "6 infinigen" "8 hata" "8 infinigen" "10 quest" "10 oracle"; do
    narrow "${case% *}"
    attend "narrow" $base "model=$model" "selector=${case#* }" seed=1 workload.prompt_tokens=1024 proactive.kr_blocks=100
    ok "heads of ${case% *} channels, ${case#* }: $outputs outputs, error $error, $relative"
done
for d in 2 4 7 258; do
    narrow $d
    must "heads of $d channels" 2 emu "$small" --set emu.compute=kernels --set "model=$model" -o "$work/refused"
    message="--set model=$model: key 'model': $model: key 'head_dim': emu.compute: kernels expects an even number in [6, 256], found $d"
    [ "$(cat "$work/stderr")" = "smartgen: $message" ] || fail "heads of $d channels: not the message: $message" "$work/stderr"
    ok "refused: heads of $d channels"
done

# ---- Planted bugs, and what cannot be ----
for mutant in flip-byte early-mask; do
    must "$mutant" 1 emu "$small" --set emu.compute=kernels --set emu.mutant=$mutant --set proactive.kr_blocks=100 -o "$work/mutant"
    one_line "$mutant"
    rm -rf "$work/mutant"
    ok "$mutant is found: $(cat "$work/stderr")"
done
must "bits that no code has" 2 emu "$small" --set emu.compute=kernels --set selector=hata --set selection.hash_bits=40
says "bits that no code has" selection.hash_bits "multiple of 32"
ok "refused: $(cat "$work/stderr")"
finish
