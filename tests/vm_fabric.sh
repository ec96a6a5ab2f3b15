#!/bin/bash
# Real RDMA verbs, in a virtual machine with two soft-RoCE devices (scripts/rdma-vm.sh): the tests of the fabric between the two, and
# the transfer engine with prefill instances on one and decode instances on the other. Attention must read the same entries whatever
# the scheme, the paths and the instances; the core must act as recorded, and decide as simulated where time has no say.
. "$top_srcdir/tests/e2e/lib.sh"
. "$top_srcdir/tests/e2e/vm.sh"

# Decisions that depend on lengths and settings only, as the simulator takes them.
timeless="speculative.enabled=false on_demand.reuse=false workload.batch_barrier=true decode.start=pushed routing=round-robin records.decisions=true"
mkdir "$work/decisions"
while read -r name sets; do
    arguments=()
    for set in $timeless $sets; do
        arguments+=(--set "$set")
    done
    must "$name, simulated" 0 sim "$top_srcdir/tests/e2e/small.yaml" --engine native "${arguments[@]}" -o "$work/sim-$name"
    cp "$work/sim-$name/decisions.csv" "$work/decisions/$name.csv"
    echo "$name $timeless $sets" >>"$work/decisions/cases"
done <<'X'
decisions-full scheme=full prefill.nodes=2
decisions-partial scheme=partial proactive.kr_blocks=33 decode.nodes=2
decisions-smartgen proactive.kr_blocks=77
X

cat >"$work/script" <<'X'
. /src/tests/e2e/vm-guest.sh

export SMG_TEST_FABRIC=verbs SMG_TEST_VERBS_DEVICES=rxa,rxb SMG_TEST_ALARM_S=200
test_fabric >fabric.log 2>&1 || fail "the tests of the fabric on rxa and rxb" fabric.log
echo "ok   test_fabric between rxa and rxb: $(grep -c ' OK ' fabric.log) cases"

smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxz >out 2>&1
[ $? -eq 2 ] && grep -q "no RDMA device 'rxz' here; there are: rxa, rxb" out || fail "an unknown device" out
echo "ok   an unknown device is refused, the known ones are named"

# run NAME KEY=VALUE...: an emulated run between rxa and rxb in folder NAME, with laws that hold, and replayed.
run() {
    name=$1
    shift
    for set in "$@"; do
        shift
        set -- "$@" --set "$set"
    done
    before=$(counter rxa sent_pkts)
    smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxa,rxb "$@" --timeout 120 --quiet -o "$name" >out 2>&1 ||
        fail "$name over verbs" out
    ! grep -q '"holds": false' "$name/summary.json" || fail "$name: a conservation law does not hold" "$name/summary.json"
    smartgen replay "$name" >out 2>&1 && grep -q byte-equal out || fail "$name: replay" out
    sent=$(($(counter rxa sent_pkts) - before))
    # Blocks are megabytes, packets at most 4 KiB.
    [ $sent -gt 100 ] || fail "$name: $sent packets left rxa"
}

# alike NAME KEY=VALUE...: the same, and attention read what it read before.
alike() {
    run "$@"
    digest=$(sed -n 's/^ *"digest": *"\(.*\)",*$/\1/p' "$name/summary.json")
    first=${first:-$digest}
    [ -n "$digest" ] && [ "$digest" = "$first" ] || fail "$name: digest '$digest', at first '$first'"
    echo "ok   $name over verbs: digest $digest, replayed; $sent packets left rxa"
    rm -rf "$name"
}

alike full scheme=full
alike partial scheme=partial proactive.kr_blocks=100
alike smartgen proactive.kr_blocks=100
# Each path without the others, and the other ways that bytes can take.
alike nothing-pushed proactive.kr_blocks=0 speculative.enabled=false
alike no-speculation proactive.kr_blocks=60 speculative.enabled=false on_demand.reuse=false
alike speculation-alone proactive.kr_blocks=20 speculative.queue=own
alike serial proactive.kr_blocks=60 on_demand.parallel=false on_demand.reorder=false
alike no-gdr proactive.kr_blocks=60 gdr=false
alike fence proactive.kr_blocks=60 emu.write_order=fence
alike two-prefill proactive.kr_blocks=60 prefill.nodes=2
alike two-decode proactive.kr_blocks=60 decode.nodes=2 prefill.nodes=2
alike two-decode-full scheme=full decode.nodes=2 prefill.nodes=1 prefill.gpus_per_node=2

# Where no decision depends on time, they are those of the simulator.
while read -r name sets; do
    run $name $sets
    cmp $name/decisions.csv /src/decisions/$name.csv || fail "$name: decisions differ from the simulator's" $name/decisions.csv
    echo "ok   $name over verbs: $(($(wc -l <$name/decisions.csv) - 1)) decisions, as simulated"
    rm -rf $name
done </src/decisions/cases

smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxa,rxb --set emu.mutant=flip-byte --timeout 120 --quiet >out 2>&1
[ $? -eq 1 ] && grep -q "request 0" out || fail "a byte that is altered is not found" out
echo "ok   an altered byte is found"

# The bench itself (experiments, docs/hardware.md) is for a quiet machine: on a busy one soft-RoCE gives a peer up after half a second.
smartgen emu bench --fabric verbs --device rxa,rxb --block 9M --samples 20 --seconds 0.05 >out 2>&1
[ $? -eq 2 ] && grep -q "takes 8388608 in one message" out || fail "a block beyond the message limit" out
echo "ok   a block beyond the device's message limit is refused"
X
vm_checks 19 -p "$top_builddir/tests/test_fabric" -f "$work/decisions:/src/decisions"
finish
