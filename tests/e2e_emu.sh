#!/bin/bash
# The real transfer engine: attention reads the same entries (one digest) whatever the scheme and whichever paths are on; planted bugs are
# found; queues and arrivals over time work; nothing is left running.
. "$top_srcdir/tests/e2e/lib.sh"

has_emu || skip_all "this program is built without libfabric, or its tcp provider does not open here: smartgen emu cannot run"

small=$top_srcdir/tests/e2e/small.yaml
mixed="workload.kind=trace workload.format=csv workload.file=$top_srcdir/tests/e2e/lengths.csv workload.batch_barrier=true"

# emu NAME KEY=VALUE...: a run that must be sound and replay; its digest is in $digest.
emu() {
    local name=$1 arguments=() set
    shift
    for set in "$@"; do
        arguments+=(--set "$set")
    done
    must "$name" 0 emu "$small" "${arguments[@]}" -o "$work/$name"
    holds "$name" "$work/$name"
    [ "$(json_value "$work/$name/summary.json" failed)" = 0 ] || fail "$name: a request failed" "$work/$name/summary.json"
    replayed "$name" "$work/$name"
    digest=$(json_value "$work/$name/summary.json" digest)
    case $digest in "" | 0 | 0x0 | 0000000000000000) fail "$name: digest '$digest'" "$work/$name/summary.json" ;; esac
}

# used NAME PATH yes|no: whether bytes went over a path.
used() {
    local bytes found=yes
    bytes=$(awk -v path="\"$2\":" '$1 == path { on = 1 } on && /received_bytes/ { gsub(/[^0-9]/, ""); print; exit }' "$work/$1/summary.json")
    [ "$bytes" != 0 ] || found=no
    [ "$found" = "$3" ] || fail "$1: $bytes bytes on path $2, used: expected $3"
}

# alike NAME KEY=VALUE...: the digest is that of the first run.
alike() {
    local name=$1
    shift
    emu "$name" "$@"
    [ "$digest" = "$reference" ] || fail "$name: digest $digest, of scheme full $reference"
    ok "$name: digest $digest, replayed"
}

# ---- One digest, every path ----
emu full scheme=full records.timeline=true $mixed
reference=$digest
used full proactive yes
used full on_demand no
used full metadata no
for name in requests "prefill 1" "decode 4" "GPU main" "request 0" "NIC in: from instance 1"; do
    grep -qF "\"args\":{\"name\":\"$name\"}" "$work/full/timeline.json" || fail "full: no '$name' in the timeline" "$work/full/timeline.json"
done
[ -z "$(find "$work/full" -name '*.part')" ] || fail "full: a part of the timeline is left"
ok "full: digest $digest, replayed; one timeline of all processes"

alike partial scheme=partial $mixed proactive.kr_blocks=100
used partial on_demand yes
used partial speculative no
alike smartgen $mixed proactive.kr_blocks=100
used smartgen metadata yes
used smartgen on_demand yes
used smartgen speculative yes
alike auto-budget $mixed
alike no-proactive $mixed proactive.enabled=false
alike sequential $mixed proactive.ranking=sequential proactive.kr_blocks=120
alike random $mixed proactive.ranking=random proactive.kr_blocks=120
alike all-blocks $mixed proactive.kr_blocks=16776960
used all-blocks on_demand no
alike serial $mixed on_demand.parallel=false proactive.kr_blocks=100
alike no-reorder $mixed on_demand.reorder=false proactive.kr_blocks=100
alike no-speculation $mixed speculative.enabled=false proactive.kr_blocks=100
used no-speculation speculative no
alike own-queue $mixed speculative.queue=own proactive.kr_blocks=50
alike speculate-first $mixed speculative.start=first speculative.ratio=0.3 proactive.kr_blocks=50
alike no-reuse $mixed on_demand.reuse=false proactive.kr_blocks=100
alike reuse-partial scheme=partial $mixed on_demand.reuse=true proactive.kr_blocks=100
alike no-gdr $mixed gdr=false proactive.kr_blocks=100
alike no-gdr-serial $mixed gdr=false on_demand.parallel=false speculative.enabled=false proactive.kr_blocks=60
alike order-assume $mixed emu.write_order=assume proactive.kr_blocks=100
alike order-fence $mixed emu.write_order=fence proactive.kr_blocks=100
alike order-fence-full scheme=full $mixed emu.write_order=fence
alike free-links $mixed emu.link=free emu.time_scale=0.1 proactive.kr_blocks=100
alike start-pushed $mixed decode.start=pushed proactive.kr_blocks=100
alike two-decode $mixed decode.gpus_per_node=2 proactive.kr_blocks=100
alike two-decode-nodes $mixed decode.nodes=2 prefill.nodes=1 prefill.gpus_per_node=2 proactive.kr_blocks=100

# Other shapes: the same whether blocks are a token or a hundred, whichever metadata goes ahead.
alike coarse $mixed blocks_per_layer=3 proactive.kr_blocks=9
alike fine $mixed blocks_per_layer=600 proactive.kr_blocks=900
for selector in hata quest oracle; do
    emu "$selector" $mixed selector=$selector proactive.kr_blocks=100
    ok "$selector: digest $digest, replayed"
done

# ---- Queues, and arrivals over time ----
for scheme in full smartgen; do
    emu "queue-$scheme" scheme=$scheme workload.requests=7 prefill.nodes=2 workload.prompt_tokens=300 workload.output_tokens=3
    queue=$digest
    emu "poisson-$scheme" scheme=$scheme workload.kind=poisson workload.rate=40 workload.requests=7 prefill.nodes=2 workload.prompt_tokens=300 \
        workload.output_tokens=3
    [ "$digest" = "$queue" ] || fail "poisson-$scheme: digest $digest, of the same requests as a batch $queue"
    ok "$scheme: 7 requests on 2 prefill instances, as a batch and as Poisson arrivals without a barrier: digest $digest, replayed"
done

# ---- Planted bugs ----
for mutant in flip-byte early-mask; do
    for scheme in full smartgen; do
        pushed=$([ "$scheme" = full ] || echo --set proactive.kr_blocks=100)
        must "$mutant, $scheme" 1 emu "$small" --set scheme=$scheme --set emu.mutant=$mutant $pushed -o "$work/mutant"
        one_line "$mutant, $scheme"
        grep -qE "request 0\b.*layer [0-9]+\b.*token [0-9]+\b" "$work/stderr" ||
            fail "$mutant, $scheme: the message does not name request, layer and token" "$work/stderr"
        rm -rf "$work/mutant"
        ok "$mutant is found in scheme $scheme: $(cat "$work/stderr")"
    done
done

# ---- Nothing is left ----
nothing_runs "after the runs"
ok "no process is left running"

# One that is ended from outside takes its processes with it, and crashes of the program are not taken for failed runs.
# SIGTERM is answered: the run is given up, and no folder of it is left.
signals="TERM:1 KILL:137 SEGV:139"
# Sanitizers catch a crash to report it, and end the program their own way.
! grep -q -- -fsanitize "$top_builddir/Makefile" 2>/dev/null || signals="TERM:1 KILL:137"
for signal in $signals; do
    "$SMARTGEN" emu "$small" --set workload.output_tokens=2000 -o "$work/ended" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    sleep 1.5
    kill -0 "$pid" 2>/dev/null || fail "the long run ended by itself" "$work/stderr"
    kill -"${signal%:*}" "$pid"
    for i in $(seq 50); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$pid" 2>/dev/null; then
        kill -KILL "$pid"
        fail "SIG${signal%:*}: the run goes on"
    fi
    rc=0
    wait "$pid" 2>/dev/null || rc=$?
    [ "$rc" -eq "${signal#*:}" ] || fail "SIG${signal%:*}: exit status $rc" "$work/stderr"
    nothing_runs "after SIG${signal%:*}"
    if [ "${signal%:*}" = TERM ]; then
        [ -z "$(ls -d "$work"/ended* 2>/dev/null)" ] || fail "SIGTERM: a folder is left"
    fi
    rm -rf "$work"/ended*
    ok "SIG${signal%:*} ends a run with its processes"
done

# Far more processes than processors come up for many seconds; a signal does not wait for them.
for after in 0.5 1.5; do
    "$SMARTGEN" emu "$small" --set prefill.nodes=59 --set workload.output_tokens=2000 -o "$work/many" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    sleep $after
    kill -TERM "$pid" || fail "61 processes ended by themselves" "$work/stderr"
    since=$(date +%s%N)
    rc=0
    wait "$pid" || rc=$?
    took=$((($(date +%s%N) - since) / 1000000))
    [ "$rc" -eq 1 ] && [ "$(cat "$work/stderr")" = "smartgen: interrupted" ] || fail "SIGTERM to 61 processes: exit $rc" "$work/stderr"
    [ "$took" -lt 5000 ] || fail "SIGTERM to 61 processes: they end after $took ms"
    nothing_runs "after SIGTERM to 61 processes"
    [ -z "$(ls -d "$work"/many* 2>/dev/null)" ] || fail "SIGTERM to 61 processes: a folder is left"
    ok "SIGTERM ends 61 processes that come up: after $took ms"
done
finish
