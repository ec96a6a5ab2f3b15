#!/bin/bash
# smartgen emu --role: a run of processes that are started one by one and find each other over TCP reads what the same run on one host
# reads, and its logs replay at the router; strangers, wrong scenarios and missing instances are refused with a reason; an instance that
# dies costs its requests. No secret is ever printed.
. "$top_srcdir/tests/e2e/lib.sh"

has_emu || skip_all "this program is built without libfabric, or its tcp provider does not open here: smartgen emu cannot run"

small=$top_srcdir/tests/e2e/small.yaml
export SMARTGEN_TOKEN=not-to-be-seen TMPDIR=$work
settings="--set proactive.kr_blocks=100 --set workload.output_tokens=5 --timeout 60"

# router NAME ARGUMENT...: starts it in the background on a free port; $port, $pid.
router() {
    local name=$1 i
    shift
    : >"$work/$name.err" # the one that is started makes it in its own time
    "$SMARTGEN" emu "$small" $settings --role router --router 127.0.0.1:0 -o "$work/$name" "$@" >"$work/$name.out" 2>"$work/$name.err" &
    pid=$!
    port=
    for i in $(seq 600); do
        port=$(sed -n 's/.* instances at port \([0-9]*\)$/\1/p' "$work/$name.err")
        [ -z "$port" ] || return 0
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    fail "$name: the router does not listen" "$work/$name.err"
}

# instance N ROLE ARGUMENT...: starts it in the background.
others=()
instance() {
    local n=$1 role=$2
    shift 2
    "$SMARTGEN" emu "$small" $settings --role "$role" --instance "$n" --router "127.0.0.1:$port" "$@" >"$work/$n.out" 2>"$work/$n.err" &
    others+=($!)
}

# ended NAME RC: the router ends so; every instance has ended, too, with the statuses in $statuses.
ended() {
    local name=$1 want=$2 p status
    rc=0
    wait $pid || rc=$?
    [ "$rc" -eq "$want" ] || fail "$name: the router ended with $rc, expected $want" "$work/$name.err" "$work"/[0-9]*.err
    statuses=
    for p in "${others[@]}"; do
        status=0
        wait "$p" || status=$?
        statuses="$statuses$status "
    done
    others=()
    ! grep -qs not-to-be-seen "$work"/*.out "$work"/*.err "$work/$name"/*.json || fail "$name: the token was printed"
}

must "the run on one host" 0 emu "$small" $settings --set emu.link=free -o "$work/all"
router hosts
for n in 1 2 3; do
    instance $n prefill
done
instance 4 decode
ended hosts 0
[ "$statuses" = "0 0 0 0 " ] || fail "hosts: the instances end with $statuses" "$work"/[0-9]*.err
same "digest" <(json_value "$work/all/summary.json" digest) <(json_value "$work/hosts/summary.json" digest)
holds "hosts" "$work/hosts"
replayed "hosts" "$work/hosts"
grep -q "instance 4 (decode): the run is over" "$work/4.out" || fail "an instance says how it ended" "$work/4.out"
ok "five processes that join: digest $(json_value "$work/hosts/summary.json" digest) as on one host, replayed"

# What mpirun and srun set.
router ranks --timeline
for n in 1 2 3; do
    OMPI_COMM_WORLD_RANK=$n OMPI_COMM_WORLD_SIZE=5 "$SMARTGEN" emu "$small" $settings --role auto --router "127.0.0.1:$port" >"$work/$n.out" 2>"$work/$n.err" &
    others+=($!)
done
SLURM_PROCID=4 SLURM_NTASKS=5 "$SMARTGEN" emu "$small" $settings --role auto --router "127.0.0.1:$port" -o "$work/ranks" >"$work/4.out" 2>"$work/4.err" &
others+=($!)
ended ranks 0
same "digest" <(json_value "$work/all/summary.json" digest) <(json_value "$work/ranks/summary.json" digest)
for name in "prefill 1" "decode 4"; do
    grep -q "$name" "$work/ranks/timeline.json" || fail "the timeline has nothing of $name"
done
ok "ranks from the environment, with a timeline of all"
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=5 router auto --role auto --timeline
for n in 1 2 3; do
    instance $n prefill --timeline
done
instance 4 decode
ended auto 0
grep -q "decode 4" "$work/auto/timeline.json" || fail "rank 0 writes no timeline"
[ ! -s "$work/1.err" ] || fail "an instance warns of a timeline that is the router's" "$work/1.err"
ok "one command line for all ranks, --timeline too"

# Strangers and others that do not belong are told so, and the run goes on without them.
router strangers
printf 'GET / HTTP/1.0\r\n\r\n' >"/dev/tcp/127.0.0.1/$port" || true
head -c 4096 /dev/zero >"/dev/tcp/127.0.0.1/$port" || true
SMARTGEN_TOKEN=wrong must "a wrong token" 2 emu "$small" $settings --role decode --router "127.0.0.1:$port"
says "a wrong token" "the router refused instance 4: the token is not that of the run"
must "another scenario" 2 emu "$small" $settings --set seed=6 --role decode --router "127.0.0.1:$port"
says "another scenario" "another scenario, model or workload"
must "other blocks" 2 emu "$small" $settings --set blocks_per_layer=47 --role decode --router "127.0.0.1:$port"
says "other blocks" "another scenario, model or workload"
printf 'not-to-be-seen\n' >"$work/token"
for n in 1 2 3; do
    SMARTGEN_TOKEN= instance $n prefill --token-file "$work/token" -q
done
instance 4 decode
ended strangers 0
same "digest" <(json_value "$work/all/summary.json" digest) <(json_value "$work/strangers/summary.json" digest)
ok "strangers are refused, the run goes on; a token from a file"

# Somebody is missing.
rc=0
"$SMARTGEN" emu "$small" --role router --router 127.0.0.1:0 --timeout 0.2 -o "$work/missing" >"$work/stdout" 2>"$work/stderr" || rc=$?
[ "$rc" -eq 1 ] || fail "nobody joins: exit status $rc, expected 1" "$work/stderr"
says "nobody joins" "0 of 4 instances have joined within 0.2 s; missing: 1 2 3 4"
[ ! -e "$work/missing" ] || fail "nobody joins: a folder is left"
router short --timeout 4
instance 1 prefill
ended short 1
[ "$statuses" = "1 " ] || fail "short: the instance that joined ends with $statuses" "$work/1.err"
grep -qx "smartgen: instance 1: the router ended the run: 1 of 4 instances have joined within 4 s; missing: 2 3 4" "$work/1.err" ||
    fail "short: the instance that joined is not told why" "$work/1.err"
must "no router" 1 emu "$small" --role decode --router 127.0.0.1:1 --timeout 0.2
says "no router" "no router answers at '127.0.0.1:1' within 0.2 s"
ok "missing instances, and a missing router, are named"

# One dies: its request fails, the others finish and are verified.
router dies --set emu.fault=2:kill:write:1 --set routing=round-robin
for n in 1 2 3; do
    instance $n prefill --set emu.fault=2:kill:write:1 --set routing=round-robin
done
instance 4 decode --set emu.fault=2:kill:write:1 --set routing=round-robin
ended dies 1
grep -q "1 of 3 requests failed: lost instance 2" "$work/dies.err" || fail "dies: the router does not say so" "$work/dies.err"
[ "$statuses" = "1 137 1 1 " ] || fail "dies: the instances end with $statuses" "$work"/[0-9]*.err
for n in 1 3 4; do
    [ "$(cat "$work/$n.err")" = "smartgen: instance $n: 1 of 3 requests failed: lost instance 2 (connection closed)" ] ||
        fail "dies: instance $n does not say so" "$work/$n.err"
done
[ "$(grep -c ',finished,' "$work/dies/requests.csv")" -eq 2 ] || fail "dies: not two requests have finished" "$work/dies/requests.csv"
ok "an instance that dies costs its request: $(sed -n 's/^smartgen: //p' "$work/dies.err" | tail -n 1)"

# The router dies: nobody stays behind.
router gone --timeout 60
for n in 1 2 3; do
    instance $n prefill --timeout 5
done
kill -9 $pid
wait $pid 2>/dev/null || true
for p in "${others[@]}"; do
    rc=0
    wait "$p" || rc=$?
    [ "$rc" -ne 0 ] || fail "the router dies: an instance ends with status 0" "$work"/[0-9]*.err
done
others=()
rm -rf "$work/gone.tmp-run"
ok "without its router an instance ends: $(sed -n 's/^smartgen: //p' "$work/1.err" | tail -n 1)"

# In the middle of a run the router, or an instance, is interrupted or dies: every other one ends soon, with 1 and the reason.
# struck WHO SIGNAL STATUSES TEXT: WHO is an instance, 0 the router; statuses of all, and what the others say.
struck() {
    local who=$1 signal=$2 want=$3 text=$4 n found all
    router struck --set workload.output_tokens=3000
    for n in 1 2 3; do
        instance $n prefill --set workload.output_tokens=3000
    done
    instance 4 decode --set workload.output_tokens=3000
    all=($pid "${others[@]}")
    sleep 3
    kill -0 "${all[@]}" || fail "SIG$signal to $who: the run ended by itself" "$work/struck.err" "$work"/[0-9]*.err
    kill -"$signal" "${all[$who]}"
    for n in $(seq 100); do
        kill -0 "${all[@]}" 2>/dev/null || break
        sleep 0.1
    done
    found=
    for n in 0 1 2 3 4; do
        rc=0
        wait "${all[$n]}" 2>/dev/null || rc=$?
        found="$found$rc "
    done
    others=()
    [ "$found" = "$want " ] || fail "SIG$signal to $who: they end with $found, expected $want" "$work/struck.err" "$work"/[0-9]*.err
    for n in 1 2 3 4; do
        [ "$n" -eq "$who" ] && continue
        [ "$(wc -l <"$work/$n.err")" -eq 1 ] && grep -qE "^smartgen: instance $n: ($text)" "$work/$n.err" ||
            fail "SIG$signal to $who: instance $n does not say '$text'" "$work/$n.err"
        [ ! -s "$work/$n.out" ] || fail "SIG$signal to $who: instance $n prints" "$work/$n.out"
    done
    rm -rf "$work/struck"*
    ok "SIG$signal to $who: the others end with 1: $(sed -n 's/^smartgen: //p' "$work/$((who == 1 ? 2 : 1)).err")"
}
struck 0 TERM "1 1 1 1 1" "the router ended the run: interrupted$"
struck 2 TERM "1 1 1 1 1" "the router ended the run: instance 2 failed: interrupted$|.* requests failed: lost instance 2"
struck 0 KILL "137 1 1 1 1" "the router is gone before the run was over$"

at="--router 127.0.0.1:1"
refused "an unknown role" "expected all, router, prefill, decode or auto" emu "$small" --role decoder $at
refused "a role without a router" "needs --router" emu "$small" --role decode
refused "a router without a role" "are for --role" emu "$small" $at
refused "a prefill instance that is not named" "instances are 1 to 3" emu "$small" --role prefill $at
refused "a prefill instance that is a decode instance" "instances are 1 to 3; found 4" emu "$small" --role prefill --instance 4 $at
refused "auto without a rank" "mpirun or srun" emu "$small" --role auto $at
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 refused "another number of ranks" "start 5 processes" emu "$small" --role auto $at
refused "links that are shaped" "set emu.link: free" emu "$small" --role decode $at --set emu.link=shaped
refused "a folder of an instance" "the router writes the record folder" emu "$small" --role decode $at -o "$work/x"
refused "an address without a port" "expected HOST:PORT" emu "$small" --role decode --router localhost
refused "port 0 of a router that is elsewhere" "address 'localhost:0': expected a port from 1 to 65535" emu "$small" --role decode --router localhost:0
refused "a role, misspelt" "found 'ruoter'; did you mean 'router'?" emu "$small" --role ruoter $at
SMARTGEN_TOKEN= refused "an empty token" "expected a token of 1 to 64 bytes" emu "$small" --role decode $at
refused "a token file that is not there" "No such file" emu "$small" --role decode $at --token-file "$work/none"
(unset SMARTGEN_TOKEN && refused "no token" "set SMARTGEN_TOKEN" emu "$small" --role decode $at) || exit 1
finish
