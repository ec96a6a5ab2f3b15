#!/bin/bash
# smartgen emu bench and measure: every point of the lists is measured, as a table and as JSON; wrong lists and options that do not apply are
# refused; Ctrl-C ends them.
. "$top_srcdir/tests/e2e/lib.sh"

refused "a list with a gap" "--block: expected" emu bench --block 4K,,8K
refused "a size of nothing" "--block: expected" emu bench --block 4
refused "no size at all" "--block: expected 1 to 16 whole numbers in [8, 1073741824] separated by commas, found ''" emu bench --block ""
refused "a list of words" "--batch: expected" emu bench --batch many
refused "a chunk smaller than its block" "expected the bytes of a KV block, and of a chunk of one or more, found '128K,4K'" \
    emu measure --block 128K,4K
refused "three sizes of two" "expected the bytes of a KV block, and of a chunk" emu measure --block 4K,8K,16K
refused "another action" "did you mean 'bench'?" emu bnch
refused "another action, of measuring" "did you mean 'measure'?" emu mesure -o "$work/wire"
refused "a fourth queue pair" "--queues: expected" emu bench --queues 4
refused "no place" "--places: expected" emu bench --places 0
refused "memory of another kind" "--memory: expected host or gpu, found 'gpus'" emu bench --memory gpus
refused "a scenario's key" "--set" emu bench --set scheme=full
refused "a bench option without bench" "smartgen emu bench" emu "$top_srcdir/tests/e2e/small.yaml" --depth 4
if has verbs; then
    if ! has rdma; then
        refused "verbs without a device" "no RDMA device here" emu bench --fabric verbs
    fi
else
    skip_part "this program is built without libibverbs"
fi

if ! has_emu; then
    skip_part "no libfabric with tcp: nothing is measured"
    finish
    exit 0
fi

refused "three devices" "expected NAME, or NAME,NAME" emu bench --device a,b,c
for action in "bench" "measure -o $work/wire"; do
    refused "a provider, misspelt: emu $action" "no provider 'tpc' with message endpoints on 127.0.0.1: No data available; there are " \
        emu $action --device tpc
    grep -qE "; there are (.*, )?tcp(,|\$)" "$work/stderr" || fail "a provider, misspelt: emu $action: tcp is not named" "$work/stderr"
done
short="--block 4K,100000 --batch 1,4 --queues 1,3 --entries 1,50 --samples 20 --seconds 0.02"
[ -e /dev/nvidia0 ] || refused "memory of a GPU that is not here" "GPU memory: " emu bench --memory gpu
must "a table" 0 emu bench $short
# 8 points of WRITEs, 2 with masks, 2 of round trips.
lines=$(grep -cE '^ +[0-9]+ ' "$work/stdout")
[ "$lines" -eq 12 ] || fail "a table: $lines lines of numbers, expected 12" "$work/stdout"
ok "a table of 12 points"

must "one place" 0 emu bench --block 4K,100000 --batch 1,4 --queues 3 --entries 1 --samples 5 --seconds 0.01 --places 1
[ "$(grep -cE '^ +[0-9]+ ' "$work/stdout")" -eq 7 ] || fail "one place: not 7 points" "$work/stdout"
must "JSON" 0 emu bench $short --json
for field in bytes_per_s:8 post:8 wire:8 completion:8 masked_s:2 reply_bytes:2 p99_us:26; do
    n=$(grep -c "\"${field%:*}\":" "$work/stdout") || true
    [ "$n" -eq "${field#*:}" ] || fail "JSON: '${field%:*}' $n times, expected ${field#*:}" "$work/stdout"
done
! grep -qE '"(bytes_per_s|messages_per_s|masked_s|alone_s)": (-|0(\.0*)?,?$)' "$work/stdout" || fail "JSON: a rate that is none" "$work/stdout"
ok "JSON with the same points"

must "a block larger than a chunk" 0 emu measure --block 200K --seconds 0.02 --samples 2 -q

# interrupted SECONDS ARGUMENT...: after that time, in the midst of minutes; nothing may be left in $work/here.
mkdir "$work/here"
interrupted() {
    local after=$1 i
    shift
    "$SMARTGEN" "$@" --seconds 100 >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    sleep "$after"
    kill -TERM "$pid" || fail "$* ended before it was interrupted" "$work/stderr"
    for i in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -9 "$pid" 2>/dev/null || fail "interrupted $*: it goes on" "$work/stderr"
    rc=0
    wait "$pid" || rc=$?
    [ "$rc" -eq 1 ] && [ "$(cat "$work/stderr")" = "smartgen: interrupted" ] || fail "interrupted $*: exit $rc" "$work/stderr"
    [ ! -s "$work/stdout" ] || fail "interrupted $*: prints" "$work/stdout"
    leaves "interrupted $*" "$work/here"
    ok "interrupted after $after s: $(echo "$*" | sed "s|$work/||g"): exit 1, nothing is left"
}
for after in 0.5 1.5; do
    interrupted $after emu bench --block 4K
    interrupted $after emu bench --block 4K --batch 8 --queues 3 --json
    interrupted $after emu measure -o "$work/here/wire"
done
nothing_runs "after the signals"
finish
