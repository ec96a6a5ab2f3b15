#!/bin/bash
# Real RDMA verbs, in a virtual machine with two soft-RoCE devices (scripts/rdma-vm.sh): the tests of the fabric between the two, and
# the transfer engine with prefill instances on one and decode instances on the other. Attention must read the same entries whatever
# the scheme, and the core must act as recorded.
. "$top_srcdir/tests/e2e/lib.sh"

has verbs || skip_all "this program is built without libibverbs"
! grep -q -- '-fsanitize=' "$top_builddir/Makefile" 2>/dev/null ||
    skip_all "a sanitized program is too slow for a virtual machine; other builds run it there"

cat >"$work/script" <<'X'
# fail CHECK [FILE...]
fail() {
    echo "FAIL $1"
    shift
    [ $# -eq 0 ] || tail -n 40 "$@"
    exit 1
}

export SMG_TEST_FABRIC=verbs SMG_TEST_VERBS_DEVICES=rxa,rxb SMG_TEST_ALARM_S=200
test_fabric >fabric.log 2>&1 || fail "the tests of the fabric on rxa and rxb" fabric.log
echo "ok   test_fabric between rxa and rxb: $(grep -c ' OK ' fabric.log) cases"

export SMARTGEN_DATA=/src/traces/data
smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxz >out 2>&1
[ $? -eq 2 ] && grep -q "no RDMA device 'rxz' here; there are: rxa, rxb" out || fail "an unknown device" out
echo "ok   an unknown device is refused, the known ones are named"

packets() {
    cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}

for scheme in full partial smartgen; do
    before=$(packets rxa)
    smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxa,rxb --set scheme=$scheme --set proactive.kr_blocks=100 --timeout 120 \
        --quiet -o $scheme >out 2>&1 || fail "$scheme over verbs" out
    ! grep -q '"holds": false' $scheme/summary.json || fail "$scheme: a conservation law does not hold" $scheme/summary.json
    smartgen replay $scheme >out 2>&1 && grep -q byte-equal out || fail "$scheme: replay" out
    digest=$(sed -n 's/^ *"digest": *"\(.*\)",*$/\1/p' $scheme/summary.json)
    first=${first:-$digest}
    [ -n "$digest" ] && [ "$digest" = "$first" ] || fail "$scheme: digest '$digest', of scheme full '$first'"
    sent=$(($(packets rxa) - before))
    # Blocks are megabytes, packets at most 4 KiB.
    [ $sent -gt 100 ] || fail "$scheme: $sent packets left rxa"
    echo "ok   $scheme over verbs: digest $digest, replayed; $sent packets left rxa"
done

smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxa,rxb --set emu.mutant=flip-byte --timeout 120 --quiet >out 2>&1
[ $? -eq 1 ] && grep -q "request 0" out || fail "a byte that is altered is not found" out
echo "ok   an altered byte is found"

# The bench itself (experiments, docs/hardware.md) is for a quiet machine: on a busy one soft-RoCE gives a peer up after half a second.
smartgen emu bench --fabric verbs --device rxa,rxb --block 9M --samples 20 --seconds 0.05 >out 2>&1
[ $? -eq 2 ] && grep -q "takes 8388608 in one message" out || fail "a block beyond the message limit" out
echo "ok   a block beyond the device's message limit is refused"
X
rc=0
SMG_VM_LIMIT=${SMG_VM_LIMIT:-550} "$top_srcdir/scripts/rdma-vm.sh" -p "$SMARTGEN" -p "$top_builddir/tests/test_fabric" \
    -f "$top_srcdir/tests/e2e:/src/tests/e2e" -f "$top_srcdir/experiments/emu-small:/src/experiments/emu-small" \
    -f "$top_srcdir/traces/data:/src/traces/data" "$work/script" >"$work/log" 2>&1 || rc=$?
[ $rc -ne 77 ] || skip_all "$(sed -n 's/^skip: //p' "$work/log")"
cat "$work/log"
checks=$(grep -c '^ok ' "$work/log") || true
[ $rc -eq 0 ] || fail "the virtual machine ended with status $rc"
[ "$checks" -eq 7 ] || fail "$checks checks, expected 7"
finish
