#!/bin/bash
# valgrind.sh fast|all [JOBS]: programs of a build without sanitizers under valgrind's memcheck. Errors and leaks, but what libraries
# keep reachable, must be none. fast: the readers over the fuzz corpora, a small run and what reads it, half of the malformed files;
# all: also unit tests, every malformed file, both engines. Prints a line per check; exit status 1: one of them failed. Wants the
# environment of make check (SMARTGEN, top_srcdir, top_builddir).
set -uo pipefail

: "${SMARTGEN:?is the path of the program}" "${top_srcdir:?is the source folder}" "${top_builddir:?is the build folder}"
how=${1:?fast or all}
jobs=${2:-$(nproc 2>/dev/null || echo 2)}
data=$top_srcdir/tests/data/malformed
FOUND=99 # valgrind's exit status when it has something to say

work=$(mktemp -d "${TMPDIR:-/tmp}/smartgen-valgrind-XXXXXX")
trap 'rm -rf "$work"' EXIT
memcheck=(valgrind -q --error-exitcode=$FOUND --leak-check=full --errors-for-leak-kinds=definite,indirect,possible
    --show-leak-kinds=definite,indirect,possible --suppressions="$top_srcdir/tests/valgrind.supp" --num-callers=20)

command -v valgrind >/dev/null || {
    echo "valgrind is not in PATH" >&2
    exit 2
}

# check NAME STATUS FOLDER COMMAND...: COMMAND, in FOLDER, ends with STATUS and makes valgrind say nothing.
n=0
check() {
    local name=$1 want=$2 place=$3
    shift 3
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    n=$((n + 1))
    run "$n" "$name" "$want" "$place" "$@" &
}

run() {
    local i=$1 name=$2 want=$3 place=$4 rc=0 start=$EPOCHREALTIME
    shift 4
    (cd "$place" && "${memcheck[@]}" "$@") >"$work/$i.out" 2>"$work/$i.err" </dev/null || rc=$?
    if [ "$rc" -eq "$want" ] && ! grep -q '^==[0-9]*== ' "$work/$i.err"; then
        echo "ok   $name, $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')"
        return
    fi
    echo "FAIL $name: exit status $rc, expected $want"
    tail -n 40 "$work/$i.err"
    touch "$work/$i.failed"
}

# A model and a workload small enough for valgrind; every reader of a run's inputs has something to do.
scenario() {
    cat >"$work/model.json" <<END
{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
 "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}
END
    printf 'arrival_s,prompt_tokens,output_tokens,hit_tokens\n0,700,4,0\n0.25,300,3,100\n' >"$work/requests.csv"
    cat >"$work/small.yaml" <<END
model: ./model.json
engine: native
blocks_per_layer: 8
prefill: {nodes: 1, gpus_per_node: 1}
decode: {nodes: 1, gpus_per_node: 1}
workload: {kind: trace, format: csv, file: ./requests.csv}
proactive: {ranking: sequential, kr_blocks: 16}
records: {decisions: true, timeline: true}
END
}

run_program() {
    local kind
    for kind in models gpus nics hosts instances workloads lengths schemes rankings selectors engines keys; do
        [ "$how" = all ] || [ "$kind" = keys ] || [ "$kind" = models ] || continue
        check "list $kind" 0 "$work" "$SMARTGEN" list "$kind"
    done
    check "plan" 0 "$work" "$SMARTGEN" plan small.yaml
    check "profile" 0 "$work" "$SMARTGEN" profile small.yaml -o p.kvit --requests 1 --steps 2
    check "profile --record" 0 "$work" "$SMARTGEN" profile small.yaml --record r.kvsr --requests 2 --steps 3
    check "sim" 0 "$work" "$SMARTGEN" sim small.yaml -o out
    wait
    check "replay" 0 "$work" "$SMARTGEN" replay out
    check "summarize" 0 "$work" "$SMARTGEN" summarize out
    check "profile --inspect" 0 "$work" "$SMARTGEN" profile --inspect p.kvit
    check "sim of a profile" 0 "$work" "$SMARTGEN" sim small.yaml -o out-profile --set proactive.importance=./p.kvit \
        --set proactive.ranking=profile --set on_demand.reuse=true
    check "sim of a recording" 0 "$work" "$SMARTGEN" sim small.yaml -o out-entry --set selection.source=entry \
        --set selection.file=./r.kvsr
    if [ "$how" = all ] && "$SMARTGEN" doctor | grep -qE '^ *simgrid +yes'; then
        check "sim on simgrid" 0 "$work" "$SMARTGEN" sim small.yaml -o out-simgrid --set engine=simgrid
    fi
}

# The arguments that make `plan` read a malformed file, from its folder's and its own name.
arguments_of() {
    local kind=$1 file=$2
    case $kind/$file in
    scenario/*) arguments=(plan "$file") ;;
    config/*) arguments=(plan --set "model=./$file") ;;
    hardware/gpu-*) arguments=(plan --set "prefill.gpu=./$file") ;;
    hardware/nic-*) arguments=(plan --set "network.nic=./$file") ;;
    hardware/host-*) arguments=(plan --set "host=./$file") ;;
    hardware/instance-*) arguments=(plan --set "prefill.instance=./$file") ;;
    importance/*) arguments=(plan --set "proactive.importance=./$file") ;;
    traces/*) arguments=(plan --set workload.kind=trace --set "workload.format=${file%%-*}" --set "workload.file=./$file") ;;
    *) return 1 ;;
    esac
}

run_malformed() {
    local path kind file i=0 arguments
    for path in "$data"/*/*; do
        [ -f "$path" ] && [ "${path%.expected}" = "$path" ] || continue
        file=${path##*/}
        kind=${path%/*}
        kind=${kind##*/}
        i=$((i + 1))
        [ "$how" = all ] || [ $((i % 2)) -eq 1 ] || continue
        arguments_of "$kind" "$file" || continue
        check "$kind/$file" 2 "$data/$kind" "$SMARTGEN" "${arguments[@]}"
    done
}

run_targets() {
    local target
    for target in "$top_builddir"/tests/fuzz/fuzz_*; do
        [ -f "$target" ] && [ -x "$target" ] && check "corpus of ${target##*/fuzz_}" 0 "$work" "$target"
    done
}

run_unit_tests() {
    local name
    for name in scenario inputs validation importance_file importance_rcu experiments_log experiments_decisions experiments_outdir \
        experiments_records experiments_summarize core_actions core_budget core_cost core_grid core_importance core_ledger \
        core_model core_pool core_rank core_scheme core_split agent_order; do
        check "test_$name" 0 "$work" "$top_builddir/tests/test_$name"
    done
}

scenario
run_targets
run_program
run_malformed
[ "$how" != all ] || run_unit_tests
wait
failed=$(find "$work" -name '*.failed' | wc -l)
echo "$((n - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
