#!/bin/bash
# Real RDMA verbs under faults, in a virtual machine with two soft-RoCE devices (scripts/rdma-vm.sh): a wire that loses and reorders
# packets, one that carries nothing or is down for two seconds, instances that die or send rubbish. What sending again can mend is mended:
# attention reads what it reads on a sound wire. What it cannot costs the requests of the instance that is gone, each with the reason.
. "$top_srcdir/tests/e2e/lib.sh"
. "$top_srcdir/tests/e2e/vm.sh"

cat >"$work/script" <<'X'
. /src/tests/e2e/vm-guest.sh

# Most of each prompt is fetched on demand: decode instances need their prefill instances until the end.
base="speculative.enabled=false workload.prompt_tokens=300 proactive.kr_blocks=100"

# emu NAME STATUS KEY=VALUE...: a run between rxa and rxb that ends with that status; what was logged replays.
emu() {
    name=$1 want=$2
    shift 2
    for set in "$@"; do
        shift
        set -- "$@" --set "$set"
    done
    rm -rf "$name"
    timeout -s KILL 120 smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxa,rxb "$@" --timeout 30 --quiet -o "$name" >out 2>&1
    rc=$?
    [ $rc -eq $want ] || {
        grep -H . /sys/class/infiniband/rx?/ports/1/hw_counters/*err* | grep -v ':0$'
        fail "$name: exit status $rc, expected $want" out
    }
    ! grep -q '"holds": false' "$name/summary.json" || fail "$name: a conservation law does not hold" "$name/summary.json"
    left=$(grep -l '^smartgen' /proc/[0-9]*/comm 2>/dev/null | wc -l)
    [ "$left" -eq 0 ] || fail "$name: $left processes are left"
    smartgen replay "$name" >replayed 2>&1 && grep -q byte-equal replayed || fail "$name: replay" replayed out
}

# digest NAME [REQUEST]: of what attention read, of all requests or of one.
digest() {
    if [ $# -eq 1 ]; then
        sed -n 's/^ *"digest": *"\(.*\)",*$/\1/p' "$1/summary.json"
    else
        awk '/"request_digests"/ { on = 1; next } on && /\]/ { exit } on { gsub(/[ ",]/, ""); print }' "$1/summary.json" | sed -n "$(($2 + 1))p"
    fi
}

emu sound 0 $base
sound=$(digest sound)
[ -n "$sound" ] || fail "no digest" sound/summary.json
echo "ok   a sound wire: digest $sound"

# ---- Packets are lost and overtake each other ----
for scheme in full partial smartgen; do
    emu sound-$scheme 0 scheme=$scheme
done
for d in va vb; do
    tc qdisc replace dev $d root netem limit 10000 delay 2ms reorder 99% loss 1% || fail "netem"
done
for scheme in full partial smartgen; do
    before=$(($(counter rxa rcvd_seq_err) + $(counter rxb rcvd_seq_err)))
    emu lossy-$scheme 0 scheme=$scheme
    gaps=$(($(counter rxa rcvd_seq_err) + $(counter rxb rcvd_seq_err) - before))
    [ "$(digest lossy-$scheme)" = "$(digest sound-$scheme)" ] || fail "lossy-$scheme: digest $(digest lossy-$scheme), on a sound wire $(digest sound-$scheme)"
    [ $gaps -gt 0 ] || fail "lossy-$scheme: nothing was lost or reordered"
    echo "ok   $scheme over a wire that loses 1% of packets and lets 1% be overtaken: as on a sound one, $gaps gaps in sequence seen"
done
for d in va vb; do tc qdisc del dev $d root; done

# ---- Nothing passes for 2 s, in the middle: queue pairs go on for 3.8 s ----
# middle NAME STATUS FUNCTION KEY=VALUE...: a run so slow that it is in the middle of its push when the function acts, after 1 MB.
sent() { cat /sys/class/net/va/statistics/tx_bytes; }
pushing() {
    for i in $(seq 600); do
        [ $(($(sent) - $1)) -lt 1000000 ] || return
        sleep 0.1
    done
}
middle() {
    name=$1 want=$2 act=$3
    shift 3
    for d in va vb; do tc qdisc replace dev $d root handle 1: tbf rate 20mbit burst 10000 limit 8m || fail "tbf"; done
    rm -f acted
    (pushing $(sent); $act; echo done >acted) &
    emu $name $want "$@"
    [ -f acted ] || [ $want -ne 0 ] || fail "$name: the run was over too soon" out
    wait
    for d in va vb; do tc qdisc del dev $d root; done
}
cable_out() {
    for d in va vb; do tc qdisc add dev $d parent 1: handle 2: netem limit 10000 loss 100%; done
    sleep 2
    for d in va vb; do tc qdisc replace dev $d parent 1: handle 3: pfifo limit 10000; done
}
# Small chunks: what waits in the queue of the shaper must not be taken for lost.
slow="scheme=full network.chunk_kib=16 workload.prompt_tokens=600"
emu sound-slow 0 $slow
middle cable-out 0 cable_out $slow
[ "$(digest cable-out)" = "$(digest sound-slow)" ] || fail "cable-out: digest $(digest cable-out), on a sound wire $(digest sound-slow)"
echo "ok   a cable that carries nothing for 2 s: as on a sound one"

# Of a device that is set down the kernel forgets the routes, and soft-RoCE breaks a queue pair that has none.
device_down() {
    ip link set va down
    sleep 2
    ip link set va up
    ip neigh replace 10.0.0.2 dev va lladdr 02:00:00:00:00:02 nud permanent
    ip route replace 10.0.0.2 dev va src 10.0.0.1 table 100
}
middle device-down 1 device_down $slow
[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "status") s = i; if ($i == "reason") r = i } next }
    $s == "finished" || $r ~ /^lost instance/ { n++ } END { print n }' device-down/requests.csv)" = 3 ] ||
    fail "device-down: a request neither finished nor failed with a reason" device-down/requests.csv
echo "ok   a device that is down for 2 s: $(sed 's/^smartgen: //' out | tail -n 1)"
emu sound-again 0 $base
[ "$(digest sound-again)" = "$sound" ] || fail "sound-again: digest $(digest sound-again), before $sound"
echo "ok   and when it is up again a run is as ever"

# ---- An instance dies or sends what is none: the others go on ----
# fault NAME REQUEST REASON KEY=VALUE...
fault() {
    name=$1 victim=$2 reason=$3
    shift 3
    emu $name 1 $base "$@"
    found=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "status") s = i; if ($i == "reason") r = i } next }
        $s != "finished" { print $1 " " $s " " $r }' $name/requests.csv)
    [ "$found" = "$victim failed $reason" ] || fail "$name: '$found', expected '$victim failed $reason'" $name/requests.csv
    for request in 0 1 2; do
        [ $request -eq $victim ] || [ "$(digest $name $request)" = "$(digest sound $request)" ] || fail "$name: request $request read other entries"
    done
    echo "ok   $name: request $victim failed ($reason), the others as ever"
}
fault killed-during-push 1 "lost instance 2" emu.fault=2:kill:write:3
fault killed-during-decode 0 "lost instance 1" emu.fault=1:kill:reply:3
fault garbage 0 "instance 1 broke the protocol" emu.fault=1:garbage:write:2
fault too-long 2 "instance 3 broke the protocol" emu.fault=3:too-long:reply:1
X
vm_checks 11
finish
