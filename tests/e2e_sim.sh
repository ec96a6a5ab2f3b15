#!/bin/bash
# Simulation from the command line: reproducible to the byte, lawful, honest about deadlock and failed requests; plan, list, doctor.
. "$top_srcdir/tests/e2e/lib.sh"

small=$top_srcdir/tests/e2e/small.yaml
mixed="workload.kind=trace workload.format=csv workload.file=$top_srcdir/tests/e2e/mixed.csv"
all_records="records.decisions=true records.timeline=true"
[ "$engines" != native ] || skip_part "this program is built without SimGrid: only the native engine is tested"

# sim CHECK RC FOLDER KEY=VALUE...
sim() {
    local what=$1 want=$2 folder=$3 arguments=() set
    shift 3
    for set in "$@"; do
        arguments+=(--set "$set")
    done
    must "$what" "$want" sim "$small" "${arguments[@]}" -o "$folder"
}

same_folders() {
    local file
    [ "$(ls -A "$2")" = "$(ls -A "$3")" ] || fail "$1: not the same files: $(ls -A "$2" "$3")"
    for file in "$2"/*; do
        same "$1" "$file" "$3/${file##*/}"
    done
}

# Brackets outside of strings match, and nothing follows the value.
balanced() {
    awk '{
        text = $0
        gsub(/\\./, "", text)
        gsub(/"[^"]*"/, "0", text)
        if (done && text ~ /[^ \t]/) exit bad = 1
        n = length(text)
        for (i = 1; i <= n; i++) {
            c = substr(text, i, 1)
            if (c == "{" || c == "[") open[++depth] = c
            else if (c == "}" || c == "]") {
                if (!depth || open[depth] != (c == "}" ? "{" : "[")) exit bad = 1
                done = !--depth
            } else if (c == "\"") exit bad = 1
        }
    } END { exit bad || depth || !done }' "$2" || fail "$1: ${2##*/} is not balanced JSON" "$2"
}

# ---- The same scenario and seed twice: the same bytes ----
for engine in $engines; do
    for detail in layer iteration; do
        for source in entry layer; do
            what="$engine, detail $detail, selection $source"
            for i in 1 2; do
                sim "$what" 0 "$work/twice-$i" $mixed $all_records engine=$engine detail=$detail selection.source=$source
            done
            same_folders "$what" "$work/twice-1" "$work/twice-2"
            holds "$what" "$work/twice-1"
            replayed "$what" "$work/twice-1"
            balanced "$what" "$work/twice-1/timeline.json"
            balanced "$what" "$work/twice-1/run.json"
            balanced "$what" "$work/twice-1/summary.json"
            ok "$what: $(ls "$work/twice-1" | wc -l) files byte-equal, laws hold, replayed"
        done
    done
done

# A shorter run into the same folder leaves none of the longer one's files.
sim "less records" 0 "$work/twice-1" $mixed records.tokens=false records.events=false
[ "$(echo $(ls -A "$work/twice-1"))" = "requests.csv run.json summary.json" ] || fail "less records: left $(ls -A "$work/twice-1")"
ok "a folder that is written again holds the new run only"

# Another seed: other arrivals and other blocks.
for seed in 1 2; do
    sim "seed $seed" 0 "$work/seed-$seed" seed=$seed proactive.ranking=random proactive.kr_blocks=150 workload.kind=poisson workload.rate=50 workload.requests=4 records.decisions=true
    replayed "seed $seed" "$work/seed-$seed"
done
for file in decisions.csv requests.csv; do
    ! cmp -s "$work/seed-1/$file" "$work/seed-2/$file" || fail "seeds 1 and 2 give the same $file"
done
ok "another seed gives other arrivals and other blocks"

# ---- Both engines tell the same story ----
if [ "$engines" != native ]; then
    for scheme in full partial smartgen; do
        for engine in $engines; do
            sim "$scheme on $engine" 0 "$work/story-$engine" $mixed scheme=$scheme engine=$engine network.oversubscription=2
            # Nine digits are written; the last ones are the engines' own.
            awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^[0-9.e+-]+$/ && $i ~ /[.e]/) $i = sprintf("%.6g", $i); print }' \
                "$work/story-$engine/requests.csv" >"$work/story-$engine.csv"
        done
        same "$scheme on both engines" "$work/story-simgrid.csv" "$work/story-native.csv"
        replayed "$scheme on both engines" "$work/story-simgrid" "$work/story-native"
        ok "$scheme: simgrid and native write the same records to 6 digits"
    done
fi

# ---- Conservation, every scheme and path: one process an engine ----
variants="scheme=full scheme=partial on_demand.parallel=false gdr=false on_demand.reuse=false speculative.enabled=false
    speculative.queue=own proactive.enabled=false proactive.ranking=sequential proactive.kr_blocks=999999 decode.start=pushed
    decode.nodes=2 prefill.gpus_per_node=2 detail=iteration selector=hata selector=quest selector=oracle"

laws() {
    local variant
    for variant in $variants; do
        sim "$variant on $engine" 0 "$work/laws" workload.kind=poisson workload.rate=30 workload.requests=6 engine=$engine $variant
        holds "$variant on $engine" "$work/laws"
        replayed "$variant on $engine" "$work/laws"
    done
}

pids=
for engine in $engines; do
    mkdir "$work/$engine"
    (
        trap - EXIT
        work=$work/$engine
        laws
    ) &
    pids="$pids $!"
done
for pid in $pids; do
    wait "$pid" || exit 1
done
for engine in $engines; do
    ok "$engine: the laws hold in $(echo $variants | wc -w) variants, each replayed"
done

# ---- Timeline ----
for engine in $engines; do
    must "--timeline on $engine" 0 sim "$small" --engine "$engine" --timeline -o "$work/timeline"
    balanced "--timeline on $engine" "$work/timeline/timeline.json"
    [ "$(grep -o '"ph"' "$work/timeline/timeline.json" | wc -l)" -gt 50 ] || fail "--timeline on $engine: hardly an event" "$work/timeline/timeline.json"
    replayed "--timeline on $engine" "$work/timeline"
    ok "--timeline on $engine: balanced JSON"
done
must "no output" 0 sim "$small" --quiet
[ ! -s "$work/stdout" ] && [ ! -s "$work/stderr" ] || fail "--quiet prints" "$work/stdout" "$work/stderr"
ok "--quiet prints nothing"

# ---- Deadlock: a barrier that waits for six requests, memory for three ----
for engine in $engines; do
    sim "deadlock on $engine" 1 "$work/deadlock" engine=$engine workload.requests=6 decode.host_memory_gib=0.012
    one_line "deadlock on $engine"
    says "deadlock on $engine" deadlock "6 of 6 requests wait" " 0 (" " 3 (" " 5 ("
    [ "$(grep -c '"holds": true' "$work/deadlock/summary.json")" -ge 1 ] || fail "deadlock on $engine: no records"
    replayed "deadlock on $engine" "$work/deadlock"
    ok "deadlock on $engine: exit 1, the waiting requests are named, the records stay and replay"
done
# The same without a barrier: they take turns.
sim "no barrier" 0 "$work/turns" workload.requests=6 decode.host_memory_gib=0.012 workload.batch_barrier=false
holds "no barrier" "$work/turns"
replayed "no barrier" "$work/turns"
ok "without the barrier the six take turns"

# ---- A request that no pool can hold ----
for engine in $engines; do
    for pool in decode prefill; do
        sim "too large for $pool on $engine" 1 "$work/large" $mixed engine=$engine $pool.host_memory_gib=0.03
        [ "$(awk -F, '$2 == "finished"' "$work/large/requests.csv" | wc -l)" -eq 4 ] || fail "too large for $pool on $engine: the others do not finish" "$work/large/requests.csv"
        [ "$(awk -F, '$2 == "failed" && $3 != "" { print $1 }' "$work/large/requests.csv")" = 2 ] ||
            fail "too large for $pool on $engine: request 2 does not fail with a reason" "$work/large/requests.csv"
        holds "too large for $pool on $engine" "$work/large"
        replayed "too large for $pool on $engine" "$work/large"
        ok "too large for $pool on $engine: exit 1, request 2 failed: $(awk -F, '$2 == "failed" { print $3 }' "$work/large/requests.csv"), the others finish"
    done
done

# ---- plan ----
must "plan --json" 0 plan "$small" --json
cp "$work/stdout" "$work/plan.json"
balanced "plan --json" "$work/plan.json"
for field in model tokens kv_bytes_per_token kv_bytes metadata_bytes tp_s tt_s kr_raw kr_blocks total_blocks mode proactive_bytes \
    on_demand_ratio ttft_s ttst_s tbt_s utilisation; do
    grep -q "\"$field\":" "$work/plan.json" || fail "plan --json: field '$field' is missing" "$work/plan.json"
done
ok "plan --json has the fields of the contract"
must "plan" 0 plan
for word in Tp Tt window Kr mode metadata TTFT TTST TBT utilisation; do
    grep -q "$word" "$work/stdout" || fail "plan: '$word' is missing" "$work/stdout"
done
ok "plan of the default scenario"

# ---- list, doctor, help ----
for kind in models gpus nics hosts workloads schemes rankings selectors engines keys; do
    must "list $kind" 0 list $kind
    [ -s "$work/stdout" ] || fail "list $kind: nothing"
done
ok "list knows 10 kinds"
"$SMARTGEN" list keys | awk '{ print $1 }' >"$work/keys"
sim "keys" 0 "$work/keys-run"
while read -r key; do
    grep -q "\"${key##*.}\":" "$work/keys-run/run.json" || fail "key $key is not in run.json" "$work/keys-run/run.json"
done <"$work/keys"
ok "run.json states each of $(wc -l <"$work/keys") keys"
must "doctor" 0 doctor
ok "doctor"
for command in plan sim emu replay summarize figures list doctor; do
    must "$command --help" 0 $command --help
    grep -q "^usage: smartgen $command" "$work/stdout" || fail "$command --help: no usage" "$work/stdout"
done
must "--help" 0 --help
must "--version" 0 --version
ok "--help of every command"

# ---- Ctrl-C ----
mkdir "$work/interrupted"
for engine in $engines; do
    "$SMARTGEN" sim --engine "$engine" --set selection.source=entry --set workload.output_tokens=4000 -o "$work/interrupted/run" \
        >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    while [ -z "$(ls "$work/interrupted")" ]; do sleep 0.1; done # it has begun to write
    sleep 0.5
    kill -TERM "$pid"
    rc=0
    wait "$pid" || rc=$?
    [ "$rc" = 1 ] && grep -q interrupted "$work/stderr" || fail "interrupted sim, $engine: exit $rc" "$work/stderr"
    [ -z "$(ls "$work/interrupted")" ] || fail "interrupted sim, $engine, left something"
done
ok "an interrupted run ends with 1 and leaves nothing"

# stopped NAME ARGUMENT...: works for long in $work/interrupted.
stopped() {
    local name=$1
    shift
    "$SMARTGEN" "$@" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    sleep 2
    kill -TERM "$pid" || fail "$name ended before it was interrupted" "$work/stderr"
    rc=0
    wait "$pid" || rc=$?
    [ "$rc" = 1 ] && says "$name" "smartgen: interrupted" || fail "interrupted $name: exit $rc" "$work/stderr"
    [ -z "$(ls -A "$work/interrupted")" ] || fail "interrupted $name left something: $(ls -A "$work/interrupted")"
    ok "interrupted $name: exit 1, nothing is left"
}
stopped figures figures -o "$work/interrupted/figures"
stopped profile profile --requests 1000 --steps 60 -o "$work/interrupted/profile.kvit"
stopped "profile --record" profile --set workload.requests=100 --set workload.output_tokens=2000 --record "$work/interrupted/record.kvsr"

# early NAME ARGUMENT...: has only begun when it is interrupted: what it reads comes from a pipe that says nothing.
mkfifo "$work/mute"
early() {
    local name=$1 i
    shift
    "$SMARTGEN" "$@" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    for i in $(seq 60); do
        ! grep -qsE 'fifo_open|wait_for_partner' "/proc/$pid/wchan" || break
        sleep 0.05
    done
    kill -TERM "$pid" || fail "$name ended before it was interrupted" "$work/stderr"
    rc=0
    wait "$pid" || rc=$?
    [ "$rc" = 1 ] && [ "$(cat "$work/stderr")" = "smartgen: interrupted" ] || fail "$name, interrupted at its start: exit $rc" "$work/stderr"
    [ -z "$(ls -A "$work/interrupted")" ] || fail "$name, interrupted at its start, left something: $(ls -A "$work/interrupted")"
    ok "$name, interrupted at its start: exit 1, nothing is left"
}
early sim sim "$work/mute" -o "$work/interrupted/run"
! has_emu || early emu emu "$work/mute" -o "$work/interrupted/run"
early "kernels measure" kernels measure "$work/mute" -o "$work/interrupted/machine"
early profile profile "$work/mute" -o "$work/interrupted/profile.kvit"
early "profile --record" profile "$work/mute" --record "$work/interrupted/record.kvsr"
early "profile --merge" profile --merge "$work/mute" "$work/mute" -o "$work/interrupted/profile.kvit"
early "profile --heatmap" profile --heatmap "$work/mute" -o "$work/interrupted/map.csv"

# ---- streamingllm attends to all that is present, also where that is everything: more pushed, more to read ----
before_sim=0 before_plan=0 modes=
for blocks in 2000 1999 1000 500 0; do # fewer than there are
    sets=(--set scheme=streamingllm --set model=qwen3-14b --set blocks_per_layer=100 --set workload.output_tokens=5
        --set "proactive.kr_blocks=$((4000 - blocks))")
    must "streamingllm" 0 sim --engine native "${sets[@]}" -o "$work/streaming"
    modes+=" $(sed -n 2p "$work/streaming/requests.csv" | tr , '\n' | grep -xE 'full|selective')"
    tbt=$(sed -n 's/.*TBT \([0-9.]*\) s.*/\1/p' "$work/stdout")
    must "streamingllm, plan" 0 plan --json "${sets[@]}"
    planned=$(json_value "$work/stdout" tbt_s)
    # A hundredth: where everything is local nothing is split.
    awk -v s="$tbt" -v t="$before_sim" -v p="$planned" -v q="$before_plan" 'BEGIN { exit !(s > 0.99 * t && p > 0.99 * q && p < 1.02 * s && s < 1.02 * p) }' ||
        fail "streamingllm with $blocks blocks left out: TBT $tbt s after $before_sim s, planned $planned s after $before_plan s"
    before_sim=$tbt before_plan=$planned
done
[ "$modes" = " selective selective selective selective full" ] || fail "streamingllm: modes$modes"
ok "streamingllm reads all that is present, up to everything: TBT $tbt s, planned $planned s"

# ---- A folder that is somebody else's, a damaged log, a failure that is not silent ----
mkdir "$work/own"
echo mine >"$work/own/requests.csv"
must "a folder that holds other files" 2 sim --engine native -o "$work/own"
[ "$(cat "$work/own/requests.csv")" = mine ] || fail "the file of a folder that was refused has changed"
ok "a folder that is not a record folder is left alone"
must "a small run" 0 sim "$small" --engine native -q -o "$work/flip"
size=$(wc -c <"$work/flip/events.bin")
for at in 100 $((size / 2)) $((size - 20)) $((size - 3)); do
    cp "$work/flip/events.bin" "$work/events.bin"
    byte=$(od -An -tu1 -j "$at" -N 1 "$work/flip/events.bin" | tr -d ' ')
    printf "$(printf '\\%03o' $((byte ^ 1)))" | dd of="$work/flip/events.bin" bs=1 seek="$at" conv=notrunc 2>/dev/null
    must "replay of a log with byte $at changed" 2 replay "$work/flip"
    says "replay of a log with byte $at changed" "$work/flip/events.bin: " damaged
    cp "$work/events.bin" "$work/flip/events.bin"
done
must "the log as it was" 0 replay "$work/flip"
ok "a changed byte of events.bin is found anywhere"

# ---- A run that broke off: no log, no finished request ----
must "a run that breaks off" 0 sim "$small" --engine native -o "$work/off" --set records.events=false
sed -i '3,$s/^\([0-9]*\),finished/\1,waiting/; s/"holds": true/"holds": false/' "$work/off/requests.csv" "$work/off/summary.json"
must "summarize of a run that broke off" 0 summarize "$work/off"
says "summarize of a run that broke off" "smartgen: warning: $work/off: " "requests neither finished nor failed: the run broke off" \
    "smartgen: warning: $work/off: a conservation law does not hold: see summary.json"
grep -q "^$work/off " "$work/stdout" || fail "summarize of a run that broke off: no line" "$work/stdout"
must "replay without a log" 2 replay "$work/off"
one_line "replay without a log"
says "replay without a log" "$work/off: the run has no event log: it broke off, or records.events was off"
ok "a run that broke off is said to be one"
must "requests that can never fit" 1 sim --engine native --set prefill.host_memory_gib=0.001 -q
grep -q "request 0 .*failed: capacity exceeded" "$work/stderr" || fail "failed requests are not named" "$work/stderr"
ok "failed requests are named, also with -q"
finish
