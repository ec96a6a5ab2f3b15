#!/bin/bash
# An instance of a real run dies, stops, or talks nonsense: only the requests that it holds fail, with the reason; the others finish, and
# their attention reads what it reads in a run without a fault. Nothing is left running or lying about, and what was logged replays.
. "$top_srcdir/tests/e2e/lib.sh"

has_emu || skip_all "this program is built without libfabric, or its tcp provider does not open here: smartgen emu cannot run"

small=$top_srcdir/tests/e2e/small.yaml
# Most of each prompt is fetched on demand, so that decode instances need their prefill instances until the end.
plain="speculative.enabled=false workload.prompt_tokens=300"
base="$plain proactive.kr_blocks=100"
pair="$base decode.gpus_per_node=2 workload.requests=4 workload.output_tokens=6"
# Seconds without a sign of life: long enough for a busy machine, short enough to wait for.
patience=3

nothing_is_left() {
    nothing_runs "$1"
    [ -z "$(find "$work" -name '*.tmp-*' -o -name '*.part' -o -name 'events.[0-9]*' -o -name 'actions.[0-9]*')" ] ||
        fail "$1: left behind: $(find "$work" -name '*.tmp-*' -o -name '*.part' -o -name '*.[0-9]*.bin')"
}

# digest_of FOLDER REQUEST: of the entries that its attention read.
digest_of() {
    awk '/"request_digests"/ { on = 1; next } on && /\]/ { exit } on { gsub(/[ ",]/, ""); print }' "$1/summary.json" | sed -n "$(($2 + 1))p"
}

column() {
    awk -F, -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) c = i; next } { print $1 " " $c }' "$1/requests.csv"
}

# emu NAME RC KEY=VALUE...
emu() {
    local name=$1 want=$2 arguments=() set
    shift 2
    for set in "$@"; do
        arguments+=(--set "$set")
    done
    rm -rf "$work/$name"
    rc=0
    timeout -s KILL 60 "$SMARTGEN" emu "$small" --timeout "$patience" "${arguments[@]}" -o "$work/$name" >"$work/stdout" 2>"$work/stderr" || rc=$?
    [ "$rc" -eq "$want" ] || fail "$name: exit status $rc, expected $want" "$work/stdout" "$work/stderr"
    nothing_is_left "$name"
}

# fault NAME REFERENCE FAILED REASON KEY=VALUE...: exactly the requests FAILED ("" none) fail, for that reason; the others read what they
# read in the run REFERENCE.
fault() {
    local name=$1 reference=$2 failed=$3 reason=$4 found id n=0 all
    shift 4
    emu "$name" $([ -z "$failed" ] && echo 0 || echo 1) "$@"
    found=$(column "$work/$name" status | awk '$2 != "finished" { print $1 " " $2 }' | tr '\n' ' ')
    for id in $failed; do
        n=$((n + 1))
        [ "$(column "$work/$name" reason | sed -n "s/^$id //p")" = "$reason" ] || fail "$name: request $id: other reason" "$work/$name/requests.csv"
    done
    [ "$found" = "$(for id in $failed; do printf '%s failed ' "$id"; done)" ] || fail "$name: failed: $found, expected $failed" "$work/$name/requests.csv"
    all=$(($(wc -l <"$work/$name/requests.csv") - 1))
    for id in $(seq 0 $((all - 1))); do
        case " $failed " in *" $id "*) continue ;; esac
        [ "$(digest_of "$work/$name" "$id")" = "$(digest_of "$work/$reference" "$id")" ] || fail "$name: request $id read other entries than in $reference"
    done
    ! grep -q '"holds": false' "$work/$name/summary.json" || fail "$name: a conservation law does not hold" "$work/$name/summary.json"
    if [ -n "$failed" ]; then
        one_line "$name"
        says "$name" "$n of $all requests failed: $reason"
    fi
    all=$([ -z "$failed" ] && echo "nothing fails" || sed 's/^smartgen: //' "$work/stderr")
    replayed "$name" "$work/$name"
    ok "$name: $all; the others as ever, replayed"
}

emu sound 0 $base
emu sound-pair 0 $pair
case $(digest_of "$work/sound" 0) in "" | 0000000000000000) fail "sound: no digest of request 0" "$work/sound/summary.json" ;; esac
ok "two runs without a fault"

# ---- A prefill instance dies: before, during, after the push, while its request decodes ----
fault before-push sound 0 "lost instance 1" $base emu.fault=1:kill:start:1
fault during-push sound 1 "lost instance 2" $base emu.fault=2:kill:write:3
fault after-push sound 2 "lost instance 3" $base decode.start=pushed emu.fault=3:kill:handoff:1
fault during-decode sound 0 "lost instance 1" $base emu.fault=1:kill:reply:3
fault during-decode-serial sound 0 "lost instance 1" $base scheme=partial gdr=false emu.fault=1:kill:reply:2
emu sound-kernels 0 $base emu.compute=kernels
fault during-decode-kernels sound-kernels 0 "lost instance 1" $base emu.compute=kernels emu.fault=1:kill:reply:2

# What was handed off in mode full needs nothing more of its prefill instance; what waits for it finds no other.
one="$plain scheme=full prefill.nodes=1 workload.batch_barrier=false workload.output_tokens=40"
emu sound-full 0 $one
fault handed-off sound-full "1 2" "lost instance 1" $one emu.fault=1:kill:handoff:2
[ "$(column "$work/handed-off" proactive_bytes | sed -n 's/^0 //p')" = "" ] || fail "handed-off: bytes that nobody can have counted"

# ---- A decode instance dies ----
fault decode-at-start sound-pair "0 2" "lost instance 4" $pair emu.fault=4:kill:start:1
fault decode-in-the-middle sound-pair "1 3" "lost instance 5" $pair emu.fault=5:kill:token:3
fault decode-fenced sound-pair "0 2" "lost instance 4" $pair emu.write_order=fence emu.fault=4:kill:handoff:1
fault only-decode sound "0 1 2" "lost instance 4" $base emu.fault=4:kill:handoff:1

# ---- One stops: after $patience seconds without a sign of life it is lost ----
fault stopped-prefill sound 1 "lost instance 2" $base emu.fault=2:stop:write:2
fault stopped-decode sound-pair "0 2" "lost instance 4" $pair emu.fault=4:stop:token:1

# ---- Nonsense: who sends it is cut off ----
fault garbage-prefill sound 0 "instance 1 broke the protocol" $base emu.fault=1:garbage:write:2
fault garbage-decode sound-pair "0 2" "instance 4 broke the protocol" $pair emu.fault=4:garbage:token:1
fault too-long-prefill sound 2 "instance 3 broke the protocol" $base emu.fault=3:too-long:reply:1
fault too-long-decode sound-pair "1 3" "instance 5 broke the protocol" $pair emu.fault=5:too-long:token:2
fault bad-index sound-pair 0 "instance 4 broke the protocol" $pair emu.fault=4:bad-index:token:1
fault bad-cookie sound-pair 0 "instance 4 broke the protocol" $pair emu.fault=4:bad-cookie:start:1

# ---- A receiver that is not ready makes the sender wait, no more ----
fault slow-receiver sound "" "" $base emu.fault=4:slow-receiver:start:1

# ---- Memory: a request that waits for it gets what a lost one gives back; one that never fits fails alone ----
memory="$base workload.batch_barrier=false workload.requests=3 decode.host_memory_gib=0.0049"
fault waits-for-memory sound "" "" $memory
fault waits-for-a-lost-one sound 0 "lost instance 1" $memory emu.fault=1:kill:write:2
[ "$(column "$work/waits-for-memory" decode_join_s | cut -d' ' -f2 | sort -g | tail -n 1)" \> \
    "$(column "$work/waits-for-memory" finish_s | cut -d' ' -f2 | sort -g | head -n 1)" ] || fail "waits-for-memory: nobody waited"
emu too-large 1 proactive.kr_blocks=100 workload.batch_barrier=false workload.kind=trace workload.format=csv \
    "workload.file=$top_srcdir/tests/e2e/lengths.csv" decode.host_memory_gib=0.0049
says too-large "capacity exceeded"
holds too-large "$work/too-large"
[ "$(column "$work/too-large" status | grep -c failed)" -lt "$(column "$work/too-large" status | grep -c finished)" ] ||
    fail "too-large: more fail than those that cannot fit" "$work/too-large/requests.csv"
ok "too-large: $(column "$work/too-large" status | grep -c failed) of 6 requests cannot fit and fail alone"

# ---- What is no fault is refused ----
for bad in x 1:die:start:1 9:kill:start:1 0:kill:start:1 1:kill:start:0 1:kill:then:1 1:kill:start 1:kill:start:1:1; do
    must "emu.fault=$bad" 2 emu "$small" --set emu.fault=$bad -o "$work/bad"
    one_line "emu.fault=$bad"
    says "emu.fault=$bad" "key 'emu.fault': expected none or INSTANCE:ACT:WHEN:N" "found '$bad'"
done
ok "malformed values of emu.fault are refused"
finish
