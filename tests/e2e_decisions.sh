#!/bin/bash
# Where no decision depends on time, the two simulators and the real transfer engine decide alike: decisions.csv is the same file.
. "$top_srcdir/tests/e2e/lib.sh"

# Nothing is trickled or kept, so what a step finds present is known beforehand; routing and Kr are fixed.
timeless="speculative.enabled=false on_demand.reuse=false workload.batch_barrier=true decode.start=pushed routing=round-robin
    selection.source=entry records.decisions=true"
mixed="workload.kind=trace workload.format=csv workload.file=$top_srcdir/tests/e2e/lengths.csv"
drivers=$engines
emu=no
if has_emu; then
    emu=yes
else
    skip_part "this program is built without libfabric: only the simulators are compared"
fi

# case_of NAME KEY=VALUE...: runs it on every driver and compares.
case_of() {
    local name=$1 arguments=() set first= driver folder
    shift
    for set in $timeless "$@"; do
        arguments+=(--set "$set")
    done
    for driver in $drivers; do
        folder=$work/$name-$driver
        must "$name on $driver" 0 sim "$top_srcdir/tests/e2e/small.yaml" "${arguments[@]}" --engine "$driver" -o "$folder"
        compare
    done
    if [ "$emu" = yes ]; then
        folder=$work/$name-emu
        driver=emu
        must "$name on emu" 0 emu "$top_srcdir/tests/e2e/small.yaml" "${arguments[@]}" -o "$folder"
        compare
    fi
    case $name in
    full*) ! grep -qE ",(index|reply)," "$first/decisions.csv" || fail "$name: something is fetched on demand" "$first/decisions.csv" ;;
    *) grep -q ",index," "$first/decisions.csv" && grep -q ",reply," "$first/decisions.csv" || fail "$name: nothing is fetched on demand" ;;
    esac
    ok "$name: $(($(wc -l <"$first/decisions.csv") - 1)) decisions, the same on $drivers$([ "$emu" = no ] || echo " emu"), replayed"
    rm -rf "$work/$name-"*
}

compare() {
    replayed "$name" "$folder"
    [ -n "$first" ] || first=$folder
    [ "$(wc -l <"$folder/decisions.csv")" -gt 10 ] || fail "$name on $driver: decisions.csv is all but empty" "$folder/decisions.csv"
    same "$name" "$first/decisions.csv" "$folder/decisions.csv"
}

case_of full-one scheme=full workload.requests=1 proactive.kr_blocks=100
case_of full-six scheme=full $mixed proactive.kr_blocks=0 decode.gpus_per_node=2
case_of full-two-prefill-one-nic scheme=full workload.requests=5 workload.prompt_tokens=280 prefill.nodes=1 prefill.gpus_per_node=2 gdr=false proactive.kr_blocks=7
case_of partial-two scheme=partial workload.requests=2 workload.prompt_tokens=600 blocks_per_layer=64 proactive.kr_blocks=120
case_of partial-six-no-gdr scheme=partial $mixed gdr=false blocks_per_layer=32 proactive.kr_blocks=90
case_of partial-two-decode-nodes scheme=partial workload.requests=4 workload.output_tokens=3 decode.nodes=2 prefill.nodes=1 prefill.gpus_per_node=2 proactive.kr_blocks=33
case_of smartgen-one scheme=smartgen workload.requests=1 workload.output_tokens=5 proactive.kr_blocks=150
case_of smartgen-six scheme=smartgen $mixed blocks_per_layer=37 proactive.kr_blocks=131
case_of smartgen-two-decode-one-node scheme=smartgen workload.requests=5 decode.gpus_per_node=2 workload.prompt_tokens=450 proactive.kr_blocks=77
case_of smartgen-two-decode-nodes scheme=smartgen $mixed decode.nodes=2 prefill.nodes=1 prefill.gpus_per_node=2 proactive.kr_blocks=200
case_of smartgen-no-gdr scheme=smartgen workload.requests=4 gdr=false prefill.nodes=1 prefill.gpus_per_node=2 blocks_per_layer=64 proactive.kr_blocks=210
case_of smartgen-serial scheme=smartgen workload.requests=3 workload.prompt_tokens=350 on_demand.parallel=false on_demand.reorder=false proactive.kr_blocks=64
finish
