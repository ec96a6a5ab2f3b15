#!/bin/bash
# Request traces through the simulators: small ones always, the first 500 rows of public ones where they are at hand. A cluster is chosen
# that the trace does not overload, which `plan` must confirm.
. "$top_srcdir/tests/e2e/lib.sh"

data=$top_srcdir/tests/data
small=$top_srcdir/tests/e2e/small.yaml
public=$top_srcdir/../shared/data
[ "$engines" != native ] || skip_part "this program is built without SimGrid: only the native engine is tested"

# Checkers of memory and threads make a run many times slower.
rows=500 limit_s=60
if grep -q -- -fsanitize "$top_builddir/Makefile" 2>/dev/null; then
    rows=40 limit_s=100000
fi

# Seconds of processor that the programs run so far have taken: what a busy machine leaves alone.
cpu_s() {
    times >"$work/times"
    awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%d\n", s }' "$work/times"
}

# finished CHECK FOLDER N: N requests, none failed.
finished() {
    local n
    n=$(awk -F, 'NR > 1 && $2 == "finished"' "$2/requests.csv" | wc -l)
    [ "$n" -eq "$3" ] && [ "$(json_value "$2/summary.json" failed)" = 0 ] || fail "$1: $n of $3 requests finished" "$2/requests.csv"
    holds "$1" "$2"
    replayed "$1" "$2"
}

# ---- Small traces; rows without output are no requests ----
for trace in azure:azure.csv:3 mooncake:mooncake.jsonl:6 csv:plain.csv:4 burstgpt:burstgpt-v1.2.csv:3 splitwise:splitwise.csv:3 \
    vidur:vidur.csv:3 llmservingsim:llmservingsim.jsonl:5; do
    format=${trace%%:*} file=${trace#*:} requests=${trace##*:}
    file=${file%:*}
    for engine in $engines; do
        for detail in layer iteration; do
            what="$file on $engine, detail $detail"
            must "$what" 0 sim "$small" --set workload.kind=trace --set workload.format=$format --set "workload.file=$data/$file" --engine "$engine" \
                --set detail=$detail --set selection.source=layer -o "$work/trace"
            case $format in
            azure)
                says "$what" "$file: 1 of 4 requests have no prompt or no output tokens and were skipped" \
                    "warning: 1 of 3 prompts are longer than the model's 8192 positions"
                ;;
            mooncake | burstgpt)
                one_line "$what"
                says "$what" "requests have no prompt or no output tokens and were skipped"
                ;;
            llmservingsim)
                one_line "$what"
                says "$what" "1 of 6 requests have no prompt or no output tokens and were skipped" "2 of 5 requests follow another of their session"
                ;;
            *) [ ! -s "$work/stderr" ] || fail "$what: a message" "$work/stderr" ;;
            esac
            finished "$what" "$work/trace" "$requests"
            grep -q '"workload": false' "$work/trace/run.json" || fail "$what: run.json calls the trace synthetic" "$work/trace/run.json"
        done
    done
    ok "$file: $requests requests on $engines, both levels of detail, replayed"
done
must "limit and speedup" 0 sim "$small" --set workload.kind=trace --set workload.format=mooncake --set "workload.file=$data/mooncake.jsonl" \
    --set workload.limit=3 --set workload.speedup=10 --set selection.source=layer -o "$work/trace"
finished "limit and speedup" "$work/trace" 3
[ "$(awk -F, 'NR > 1 { print $4 }' "$work/trace/requests.csv" | tr '\n' ' ')" = "0 0 0.05005 " ] ||
    fail "limit and speedup: other arrivals" "$work/trace/requests.csv"
ok "limit and speedup of a trace"

# ---- Lengths drawn from a distribution: still a synthetic workload; the record folder can be replayed from anywhere ----
must "list lengths" 0 list lengths
grep -qx sharegpt "$work/stdout" || fail "list lengths: sharegpt is not among them" "$work/stdout"
for lengths in sharegpt "$data/vidur-lengths.csv"; do
    must "lengths $lengths" 0 sim --engine native --set detail=iteration --set "workload.lengths=$lengths" --set workload.requests=4 -o "$work/trace"
    finished "lengths $lengths" "$work/trace" 4
    grep -q 'synthetic:.* workload' "$work/stdout" || grep -q '"workload": true' "$work/trace/run.json" ||
        fail "lengths $lengths: the workload is not called synthetic" "$work/trace/run.json"
    (cd "$work/trace" && replayed "lengths $lengths, from elsewhere" .)
done
ok "lengths by name and by file, replayed"

# ---- Public traces ----
# public_trace FORMAT FILE DECODE_NODES DECODE_GBPS OVER_LENGTH: the decode link is slow enough that Eq. 2 keeps blocks back.
public_trace() {
    local format=$1 file=$2 engine seconds what arguments
    if [ ! -f "$public/$file" ]; then
        skip_part "$file is not at hand (../shared/data)"
        return
    fi
    arguments=(--set workload.kind=trace --set "workload.format=$format" --set "workload.file=$public/$file" --set "workload.limit=$rows"
        --set detail=iteration --set prefill.nodes=16 --set "decode.nodes=$3" --set "decode.link_gbps=$4")
    must "$file: plan" 0 plan "${arguments[@]}" --json
    awk '/"utilisation"/ { on = 1; next } /}/ { on = 0 } on { gsub(/[",:]/, ""); n++; if (!($2 ~ /^[0-9.e-]+$/) || $2 + 0 >= 0.8) bad = 1 }
        END { exit bad || n != 6 }' "$work/stdout" || fail "$file: plan expects a pool at 80% or more" "$work/stdout"
    ok "$file: plan: no pool is at 80%: $(awk '/"utilisation"/ { on = 1; next } /}/ { on = 0 } on { gsub(/[",:]/, ""); printf "%s %.2f, ", $1, $2 }' "$work/stdout" | sed 's/, $//')"
    for engine in $engines; do
        what="$file on $engine"
        cpu_s >"$work/began"
        must "$what" 0 sim "${arguments[@]}" --engine "$engine" -o "$work/trace"
        cpu_s >"$work/ended"
        seconds=$(($(cat "$work/ended") - $(cat "$work/began")))
        if [ "$5" -gt 0 ] && [ "$rows" -eq 500 ]; then
            one_line "$what"
            says "$what" "warning: $5 of $rows prompts are longer than the model's 40960 positions"
        elif [ "$5" -eq 0 ]; then
            [ ! -s "$work/stderr" ] || fail "$what: a message" "$work/stderr"
        fi
        finished "$what" "$work/trace" "$rows"
        awk -F, 'NR > 1 && $9 == "selective" { n++ } END { exit !n }' "$work/trace/requests.csv" || fail "$what: no request is selective"
        [ "$seconds" -le "$limit_s" ] || fail "$what: took $seconds s of processor, more than $limit_s"
        cp "$work/trace/requests.csv" "$work/$engine.csv"
        ok "$what: $rows requests in $seconds s of processor, log of $(($(wc -c <"$work/trace/events.bin") / 1000000 + $(wc -c <"$work/trace/actions.bin") / 1000000)) MB replayed"
        rm -rf "$work/trace"
    done
    [ "$engines" = native ] || compare_engines "$file"
}

# Nothing that both engines must agree on differs: who finished where, in which mode, with how many bytes over which path.
compare_engines() {
    local engine
    for engine in $engines; do
        cut -d, -f 1,2,3,5,6,7,8,9,10,21,22 "$work/$engine.csv" >"$work/$engine.cut"
    done
    same "$1 on both engines" "$work/simgrid.cut" "$work/native.cut"
    ok "$1: both engines agree on instances, modes and pushed bytes"
}

public_trace mooncake mooncake_conversation_trace.jsonl 180 4 31
public_trace azure AzureLLMInferenceTrace_conv.csv 16 10 0
finish
