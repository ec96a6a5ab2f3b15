#!/bin/bash
# Bad usage and bad input: exit status 2, one line that says where, what and what is near, and nothing left behind.
. "$top_srcdir/tests/e2e/lib.sh"

small=$top_srcdir/tests/e2e/small.yaml
place=$work/place
mkdir "$place"
data=${SMARTGEN_DATA:-$top_srcdir/traces/data}

# refused NAME TEXT... -- ARGUMENT...: OUT among the arguments stands for -o FOLDER.
refused() {
    local name=$1 texts=() arguments=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    while [ $# -gt 0 ]; do
        if [ "$1" = OUT ]; then
            arguments+=(-o "$place/out")
        else
            arguments+=("$1")
        fi
        shift
    done
    must "$name" 2 "${arguments[@]}"
    one_line "$name"
    [ ! -s "$work/stdout" ] || fail "$name: prints on standard output" "$work/stdout"
    says "$name" "${texts[@]}"
    leaves "$name" "$place"
    ok "$name: $(cut -c 1-150 "$work/stderr" | sed "s|$work/||g; s|$top_srcdir/||g")"
}

# yaml NAME TEXT...: writes a scenario file.
yaml() {
    local file=$work/$1.yaml
    shift
    printf '%s\n' "$@" >"$file"
}

# ---- What never ends is not read ----
refused "a device as scenario" "/dev/zero: expected a file, found a device" -- plan /dev/zero
refused "a device as importance" "key 'proactive.importance': /dev/zero: expected a file, found a device" -- plan --set proactive.importance=/dev/zero

# ---- Scenario files: file and line ----
yaml key "scheme: full" "seed: 3" "prefil: {nodes: 2}"
refused "unknown key" key.yaml:3 prefil prefill -- sim "$work/key.yaml" OUT
yaml nested "scheme: full" "on_demand:" "  paralel: true"
refused "unknown nested key" nested.yaml:3 paralel parallel -- sim "$work/nested.yaml" OUT
yaml type "seed: 1" "decode: {nodes: two}"
refused "wrong type" type.yaml:2 decode.nodes two integer -- sim "$work/type.yaml" OUT
yaml bool "gdr: 7"
refused "not a truth value" bool.yaml:1 gdr 7 -- sim "$work/bool.yaml" OUT
yaml map "prefill: 3"
refused "a number where keys belong" map.yaml:1 prefill -- sim "$work/map.yaml" OUT
yaml scalar "seed: {a: 1}"
refused "keys where a number belongs" scalar.yaml:1 seed -- sim "$work/scalar.yaml" OUT
yaml list "seed: [1, 2]"
refused "a list where a number belongs" list.yaml:1 seed -- sim "$work/list.yaml" OUT
yaml range "prefix_hit: 1.5"
refused "out of range" range.yaml:1 prefix_hit 1.5 -- sim "$work/range.yaml" OUT
yaml negative "" "workload: {requests: -1}"
refused "negative count" negative.yaml:2 workload.requests -1 -- sim "$work/negative.yaml" OUT
yaml nan "prefix_hit: nan"
refused "not a number" nan.yaml:1 prefix_hit nan -- sim "$work/nan.yaml" OUT
yaml twice "seed: 1" "seed: 2"
refused "a key given twice" twice.yaml:2 seed -- sim "$work/twice.yaml" OUT
yaml malformed "seed: 1" "prefill: {nodes: 2" "scheme: full"
refused "malformed YAML" malformed.yaml: -- sim "$work/malformed.yaml" OUT
yaml tab "prefill:" "	nodes: 2"
refused "malformed YAML, a tab" tab.yaml:2 -- sim "$work/tab.yaml" OUT
yaml sequence "- seed"
refused "a file that is a list" sequence.yaml -- sim "$work/sequence.yaml" OUT
refused "missing scenario file" missing.yaml "No such file" -- sim "$work/missing.yaml" OUT
refused "a folder as scenario file" "$place" -- sim "$place" OUT
refused "standard input" "<stdin>:2:1: key 'prefil': unknown key" -- sim - OUT <<<$'seed: 3\nprefil: 3'
refused "standard input that is empty" "<stdin>: empty: expected a mapping of keys" -- sim - OUT </dev/null
refused "standard input without an end" "<stdin>: larger than 1048576 bytes" -- plan - </dev/zero
refused "origin on standard input" "<stdin>:1:16: key 'prefill.gpu': unknown GPU" -- emu - OUT <<<'prefill: {gpu: l2O}'
head -c 300 /dev/zero >"$work/zero.yaml"
refused "a file of zeros" zero.yaml -- sim "$work/zero.yaml" OUT

# ---- --set: the key ----
refused "--set of an unknown key" policy.ranking -- sim "$small" --set policy.ranking=random OUT
refused "--set of a near key" speculative.ration speculative.ratio -- sim "$small" --set speculative.ration=0.1 OUT
refused "--set without a value" --set seed -- sim "$small" --set seed OUT
refused "--set without a key" -- sim "$small" --set =3 OUT
refused "--set of a wrong type" seed abc -- sim "$small" --set seed=abc OUT
refused "--set out of range" network.efficiency 2 -- sim "$small" --set network.efficiency=2 OUT
refused "--set so near 0 that times overflow" "expected a number in [1e-06, 100000], found '1e-300'" -- sim "$small" --set decode.link_gbps=1e-300 OUT
refused "--set past the range of 64 bits" seed -- sim "$small" --set seed=18446744073709551616 OUT
refused "--set of a group" prefill -- sim "$small" --set prefill=3 OUT

# ---- Names ----
refused "unknown model" qwen3-14 qwen3-14b -- sim --set model=qwen3-14 OUT
refused "unknown GPU" l40 l40s -- sim "$small" --set prefill.gpu=l40 OUT
refused "unknown GPU of decode" h10 h100 -- sim "$small" --set decode.gpu=h10 OUT
refused "unknown NIC" defalt default -- sim "$small" --set network.nic=defalt OUT
refused "unknown scheme" smartgn smartgen scheme -- sim "$small" --set scheme=smartgn OUT
refused "unknown ranking" profil profile proactive.ranking -- sim "$small" --set proactive.ranking=profil OUT
refused "unknown selector" infinigem infinigen selector -- sim "$small" --set selector=infinigem OUT
refused "unknown engine" nativ native engine -- sim "$small" --engine nativ OUT
refused "unknown data set" multifieldqb multifieldqa -- sim --set workload.dataset=multifieldqb --set model=qwen3-8b OUT
refused "missing lengths" "key 'workload.lengths': ./none: cannot open" -- sim --set workload.kind=poisson --set workload.rate=1 --set workload.lengths=./none OUT
refused "missing importance file" nosuchfile -- sim "$small" --set proactive.importance=nosuchfile OUT
refused "missing trace" nosuchtrace -- sim "$small" --set workload.kind=trace --set workload.file=nosuchtrace OUT
refused "trace without a file" workload.file -- sim "$small" --set workload.kind=trace OUT
refused "unknown format" workload.format azur azure -- sim "$small" --set workload.kind=trace --set workload.format=azur OUT

# ---- What is found wrong after reading says where the key was given: in the file, by --set, or nowhere ----
origins() {
    [ "$(cat "$work/stderr")" = "smartgen: $1" ] || fail "origin: expected 'smartgen: $1'" "$work/stderr"
}
yaml gpu "seed: 3" "prefill:" "  gpu: l2O"
refused "origin in the file" -- sim "$work/gpu.yaml" OUT
origins "$work/gpu.yaml:3:8: key 'prefill.gpu': unknown GPU 'l2O'; did you mean 'l20'?"
refused "origin in the file, emu" -- emu "$work/gpu.yaml" OUT
origins "$work/gpu.yaml:3:8: key 'prefill.gpu': unknown GPU 'l2O'; did you mean 'l20'?"
refused "origin in the file, profile" -- profile "$work/gpu.yaml" OUT
origins "$work/gpu.yaml:3:8: key 'prefill.gpu': unknown GPU 'l2O'; did you mean 'l20'?"
refused "origin in --set" -- sim "$work/gpu.yaml" --set prefill.gpu=l2l OUT
origins "--set prefill.gpu=l2l: key 'prefill.gpu': unknown GPU 'l2l'; did you mean 'l20'?"
refused "origin of a key that is named by the reader" -- plan --set workload.lengths=azure
says "origin of a key that is named by the reader" "smartgen: --set workload.lengths=azure: key 'workload.lengths': expected mean, "
refused "origin of the key that asks for another" -- sim --set workload.kind=trace OUT
origins "--set workload.kind=trace: key 'workload.kind': trace needs a file, given by key 'workload.file'"
yaml trace "workload:" "  kind: trace"
refused "the same in a file" -- plan "$work/trace.yaml"
origins "$work/trace.yaml:2:9: key 'workload.kind': trace needs a file, given by key 'workload.file'"
refused "origin of what only the emulation refuses" -- emu "$small" --set detail=iteration OUT
origins "--set detail=iteration: key 'detail': the emulation works layer by layer, set detail: layer"
refused "emu with expected counts" -- emu "$small" --set selection.source=layer OUT
origins "--set selection.source=layer: key 'selection.source': the emulation needs real index lists, set selection.source: entry"
printf '{"num_hidden_layers": 4}' >"$work/config.json"
refused "the content of a file" -- sim --set "model=$work/config.json" OUT
says "the content of a file" "smartgen: $work/config.json: "
refused "a folder where a file belongs" network.nic "$place: is a folder" -- sim "$small" --set "network.nic=$place" OUT
refused "a folder where a profile belongs" proactive.importance "Is a directory" -- sim "$small" --set "proactive.importance=$place" OUT

# ---- Keys given in vain: the run goes on, one line each ----
warned() {
    local name=$1 text=$2
    shift 2
    must "$name" 0 "$@"
    one_line "$name"
    says "$name" "smartgen: warning: $text"
    ok "$name: $(sed "s|$work/||g" "$work/stderr")"
}
yaml vain "workload:" "  kind: batch" "  file: requests.csv"
warned "a trace with kind batch" "$work/vain.yaml:3:9: key 'workload.file': has no effect with workload.kind: batch" plan "$work/vain.yaml"
warned "a key of another scheme, quiet" "--set hack.bits=4: key 'hack.bits': has no effect with scheme: smartgen" \
    sim "$small" --engine native -q --set hack.bits=4
warned "a key of the emulation" "--set emu.link=free: key 'emu.link': has no effect: only an emulation reads it" \
    sim "$small" --engine native -q --set emu.link=free
instance=$("$SMARTGEN" list instances | head -n 1)
warned "an instance that nothing is taken of" \
    "--set prefill.instance=$instance: key 'prefill.instance': has no effect: every key that it stands for is given" \
    plan --set "prefill.instance=$instance" --set prefill.gpu=l20 --set prefill.gpus_per_node=2 --set prefill.link_gbps=32 \
    --set prefill.vcpus=32 --set prefill.host_memory_gib=256
must "an instance that something is taken of" 0 plan --set "prefill.instance=$instance" --set prefill.gpu=l20
[ ! -s "$work/stderr" ] || fail "an instance that something is taken of: warns" "$work/stderr"
yaml emulated "emu: {link: free}"
must "a key of the emulation in a file" 0 plan "$work/emulated.yaml"
[ ! -s "$work/stderr" ] || fail "a key of the emulation in a file: warns" "$work/stderr"
warned "weights that do not fit" \
    "model qwen3-14b needs 29.5 GB of weights on each GPU of the decode pool (tp 1), which has 24 GB: no real machine would run this" \
    plan --set model=qwen3-14b --set decode.gpu=l4 --set decode.tp=1
must "weights shared out" 0 plan --set model=qwen3-14b --set decode.gpu=l4 --set decode.gpus_per_node=2 --set decode.tp=2
[ ! -s "$work/stderr" ] || fail "weights shared out: warns" "$work/stderr"
must "the default, spelled out" 0 plan "$top_srcdir/experiments/default.yaml"
[ ! -s "$work/stderr" ] || fail "the default, spelled out: warns" "$work/stderr"
ok "the default, spelled out: no warning"

# ---- Inputs ----
printf '{"num_hidden_layers": 4' >"$work/config.json"
refused "malformed model" config.json -- sim --set "model=$work/config.json" OUT
printf '{"num_hidden_layers": 4}' >"$work/config.json"
refused "incomplete model" config.json -- sim --set "model=$work/config.json" OUT
printf 'arrival_s,prompt_tokens,output_tokens\n0,100,4\n0.5,many,4\n' >"$work/trace.csv"
refused "malformed trace row" trace.csv:3 prompt_tokens many -- sim "$small" --set workload.kind=trace --set workload.format=csv --set "workload.file=$work/trace.csv" OUT
printf 'arrival_s,prompt_tokens,output_tokens\n0,100,4\n0.5,20\n' >"$work/trace.csv"
refused "short trace row" trace.csv:3 output_tokens -- sim "$small" --set workload.kind=trace --set workload.format=csv --set "workload.file=$work/trace.csv" OUT
printf 'arrival_s,tokens\n0,100\n' >"$work/trace.csv"
refused "trace without a column" trace.csv:1 prompt_tokens -- sim "$small" --set workload.kind=trace --set workload.format=csv --set "workload.file=$work/trace.csv" OUT
printf 'arrival_s,prompt_tokens,output_tokens\n' >"$work/trace.csv"
refused "trace without requests" trace.csv -- sim "$small" --set workload.kind=trace --set workload.format=csv --set "workload.file=$work/trace.csv" OUT
printf '{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [1]}\n{"timestamp": 0, "input_length": 5,\n' >"$work/trace.jsonl"
refused "malformed line of JSON" trace.jsonl:2 -- sim "$small" --set workload.kind=trace --set workload.format=mooncake --set "workload.file=$work/trace.jsonl" OUT
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,3,4\n' >"$work/azure.csv"
refused "malformed time" azure.csv:2 yesterday -- sim "$small" --set workload.kind=trace --set "workload.file=$work/azure.csv" OUT

# ---- What is not there yet, and what cannot be ----
refused "decode.start: layer" decode.start layer ready -- sim "$small" --set decode.start=layer OUT
# What is not built in yet is refused by name, until it is.
for scheme in hack proactive-only streamingllm; do
    "$SMARTGEN" list schemes | grep -q "^$scheme " || refused "scheme: $scheme" scheme $scheme -- sim "$small" --set scheme=$scheme OUT
done
refused "a plug-in" "key 'policy'" mine.so "cannot open" -- sim "$small" --set policy=./mine.so OUT
refused "chunked prefill" prefill.chunk_tokens -- sim "$small" --set prefill.chunk_tokens=256 OUT
refused "tensor parallelism that does not divide" prefill.tp -- sim "$small" --set prefill.tp=3 OUT
refused "too many instances" instances -- sim "$small" --set prefill.nodes=70000 OUT

# ---- Commands and options ----
refused "unknown command" simm sim -- simm "$small"
refused "unknown option" --enginee --engine -- sim "$small" --enginee native OUT
refused "option of another command" --timeline -- plan "$small" --timeline
refused "option without its value" --engine -- sim "$small" OUT --engine
refused "value for a flag" --timeline -- sim "$small" --timeline=yes OUT
refused "two scenarios" -- sim "$small" "$small" OUT
refused "no operand" -- replay
refused "letters swapped" "did you mean 'sim'?" -- smi
refused "letters swapped, help" "did you mean 'sim'?" -- help smi
refused "an unknown command, help" "smartgen: unknown command 'bogs'; \`smartgen --help\` lists them" -- help bogs
refused "letters swapped in a value" "did you mean 'csv'?" -- sim --set workload.format=cvs OUT
refused "a short option, misspelt" "did you mean '--set'?" -- sim --sett seed=3 OUT
refused "a misspelt option with its value" "did you mean '--set'?" -- sim --sett=seed=3 OUT
refused "a ranking that is near none" "expected one of profile, sequential, random, streamingllm, optimal, found 'xyzzy'" -- \
    sim --set proactive.ranking=xyzzy OUT
refused "a shell without completion" "unknown shell 'fish'; there is a script for bash and one for zsh" -- completion fish
refused "unknown kind" "did you mean 'models'?" -- list model
refused "unknown kind, nothing near" "list --help" -- list xyzzy
export SMARTGEN_DATA=$place
refused "a data folder without data" "no data files of models can be read in $place; SMARTGEN_DATA names this folder" -- list models
refused "a data folder without data sets" "no data files of workloads can be read in $place; SMARTGEN_DATA names" -- list workloads
export SMARTGEN_DATA=$data
refused "unknown engine of figures" "--engine natve: expected simgrid or native; did you mean 'native'?" -- figures --engine natve -o "$place/out"
refused "unknown fabric" "--fabric ofii: expected ofi or verbs; did you mean 'ofi'?" -- emu --fabric ofii OUT
refused "a head too small to plant in" "--head-dim: expected a whole number in [6, 256], found '2'" -- kernels quality --head-dim 2
refused "unknown figure" fig99 -- figures fig99 -o "$place/out"
refused "a figure, misspelt" "found 'fig2'; did you mean 'fig02'?" -- figures fig2 -o "$place/out"
refused "emu: role" role -- emu "$small" --role prefill OUT
refused "emu: fabric" fabrik -- emu "$small" --fabric fabrik OUT
refused "profile: more requests than lengths" "--requests: expected a whole number in [1, 4096], found '4097'" -- \
    profile --requests 4097 --steps 1 -o "$place/p.kvit"
refused "profile: no requests" "--requests: expected a whole number in [1, 4096], found '0'" -- \
    profile --requests 0 --steps 1 -o "$place/p.kvit"
refused "profile: no requests to record" "--requests: expected a whole number in [1, 100000], found '0'" -- \
    profile --requests 0 --record "$place/p.kvsr"
refused "profile: too many steps" "--steps: expected a whole number in [1, 100000], found '100001'" -- \
    profile --steps 100001 -o "$place/p.kvit"
refused "profile: half a step" "--steps: expected a whole number in [1, 100000], found '1.5'" -- profile --steps 1.5 -o "$place/p.kvit"
refused "emu: time-out" soon -- emu "$small" --timeout soon OUT

# ---- Folders ----
refused "replay of nothing" "$work/nothing" -- replay "$work/nothing"
mkdir "$work/empty"
refused "replay of an empty folder" "$work/empty" -- replay "$work/empty"
refused "summarize nothing" "$work/nothing" -- summarize "$work/nothing"
refused "summarize an empty folder" "$work/empty/run.json" -- summarize "$work/empty"
echo data >"$work/file"
refused "output below a file" "$work/file" -- sim "$small" -o "$work/file/out"
refused "output below a file, emu" "$work/file" -- emu "$small" -o "$work/file/out"
refused "output is a file" "$work/file" -- sim "$small" -o "$work/file"
[ "$(cat "$work/file")" = data ] || fail "output is a file: the file changed"
[ -z "$(find "$work" -name '*.tmp-*')" ] || fail "temporary folders: $(find "$work" -name '*.tmp-*')"
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$work/locked"
    chmod 500 "$work/locked"
    refused "output in a folder without permission" "$work/locked" -- sim "$small" -o "$work/locked/out"
else
    skip_part "root may write everywhere: a folder without permission cannot be tested"
fi
[ "$engines" != native ] || refused "engine simgrid is not built in" simgrid native -- sim "$small" --engine simgrid OUT
has libfabric || refused "libfabric is not built in" libfabric -- emu "$small" OUT

# A file that cannot be replayed any more: one byte of the recorded actions is another.
must "a run to spoil" 0 sim "$small" -o "$work/run"
replayed "a run to spoil" "$work/run"
size=$(wc -c <"$work/run/actions.bin")
printf '\377' | dd of="$work/run/actions.bin" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
must "replay of a spoiled run" 2 replay "$work/run"
one_line "replay of a spoiled run"
says "replay of a spoiled run" "$work/run/actions.bin: damaged: its bytes do not have the checksum at its end"
ok "replay of a spoiled run: exit $rc, $(sed "s|$work/||g" "$work/stderr")"
head -c $((size / 2)) "$work/run/actions.bin" >"$work/cut"
mv "$work/cut" "$work/run/actions.bin"
must "replay of a run cut short" 2 replay "$work/run"
one_line "replay of a run cut short"
says "replay of a run cut short" "$work/run/actions.bin: cut short or damaged: it does not end as a log does"
ok "replay of a run cut short: exit $rc, $(sed "s|$work/||g" "$work/stderr")"

# What is no file may never end.
must "a run in parts" 0 sim "$small" -o "$work/pipe"
for file in run.json requests.csv events.bin actions.bin; do
    mv "$work/pipe/$file" "$work/part"
    mkfifo "$work/pipe/$file"
    for command in replay summarize compare; do
        case $command/$file in replay/requests.csv | summarize/*.bin | compare/*.bin) continue ;; esac
        rc=0
        timeout 20 "$SMARTGEN" $command "$work/pipe" $([ $command != compare ] || echo "$work/run") >"$work/stdout" 2>"$work/stderr" || rc=$?
        [ "$rc" -eq 2 ] || fail "$command with a pipe for $file: exit status $rc" "$work/stderr"
        says "$command with a pipe for $file" "$work/pipe/$file: expected a file, found a pipe"
        one_line "$command with a pipe for $file"
    done
    rm "$work/pipe/$file"
    mv "$work/part" "$work/pipe/$file"
done
must "a run in parts, whole again" 0 replay "$work/pipe"
ok "replay, summarize and compare: a pipe for a file of a record folder is refused"

# Runs that are no repetitions of each other have no mean.
must "another scheme" 0 sim "$small" --engine native --set scheme=full -o "$work/full"
must "the same, another seed" 0 sim "$small" --engine native --set scheme=full --set seed=6 -o "$work/full-6"
must "summarize" 0 summarize "$work/full" "$work/full-6" "$work/run"
grep -q "^mean of 2 runs scheme=full " "$work/stdout" || fail "summarize: no mean of the two alike" "$work/stdout"
[ "$(grep -c '^mean of' "$work/stdout")" = 1 ] || fail "summarize: a mean over different runs" "$work/stdout"
grep -q "differ in scheme" "$work/stdout" || fail "summarize: does not say in what runs differ" "$work/stdout"
ok "summarize: means over runs that are alike only"
sed -i '2s/finished/finishd/' "$work/full/requests.csv"
refused "summarize a status that is none" requests.csv:2 status finishd -- summarize "$work/full"

# ---- Emulations that fail ----
if has_emu; then
    # Without a word about the source, emu takes the one that it needs; a failed run keeps its records, and they replay.
    sed "/^selection:/d; s|\.\./\.\./|$top_srcdir/|g" "$small" >"$work/plain.yaml"
    must "emu without a source" 0 emu "$work/plain.yaml" -o "$work/emu"
    grep -q '"source": "entry"' "$work/emu/run.json" || fail "emu without a source: run.json does not say entry" "$work/emu/run.json"
    ok "emu without a word about the source runs with entries"
    # A scenario of the simulation: what is to be moved is said before, and again when the time was too short. 0.1 s is: the first
    # prefill alone is paced at 0.46 s, and until then nothing moves.
    must "a large emulation" 1 emu --timeout 0.1
    says "a large emulation" "warning: at least 8.791 GB are to be moved and verified on this host" \
        "at least 8.791 GB were to be moved: a longer --timeout" /emu-small.yaml
    [ -f "$(sed -n 's/.*; \(.*emu-small.yaml\) is a small scenario.*/\1/p' "$work/stderr" | head -n 1)" ] ||
        fail "a large emulation: the small scenario is not there" "$work/stderr"
    ok "a large emulation: what is to be moved, --timeout, and a small scenario that is there"
    must "a failed emulation" 1 emu "$work/plain.yaml" --set emu.mutant=flip-byte --set records.decisions=true -o "$work/failed"
    one_line "a failed emulation"
    for file in run.json requests.csv summary.json decisions.csv events.bin actions.bin; do
        [ -s "$work/failed/$file" ] || fail "a failed emulation: no $file" "$work/stderr"
    done
    replayed "a failed emulation" "$work/failed"
    ok "a failed emulation keeps its records, and they replay"

    # children PID: the processes that it started.
    children() {
        local at line
        for at in /proc/[0-9]*/stat; do
            line=$(cat "$at" 2>/dev/null) || continue
            set -- "$1" ${line##*) }
            [ "$3" != "$1" ] || basename "${at%/stat}"
        done
    }
    # The only decode instance is stopped, or killed, in the middle of the run: every request fails, the run ends, and nothing of it stays.
    # (What losing others costs is in e2e_faults.sh.)
    for signal in STOP KILL; do
        "$SMARTGEN" emu "$work/plain.yaml" --timeout 2 --set workload.output_tokens=5000 -o "$work/lost" >"$work/stdout" 2>"$work/stderr" &
        pid=$!
        for i in $(seq 300); do
            instances=($(children "$pid" | sort -n))
            [ ${#instances[@]} -lt 4 ] || break
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.05
        done
        [ ${#instances[@]} -eq 4 ] || fail "SIG$signal: ${#instances[@]} instances" "$work/stderr"
        sleep 1
        kill -"$signal" "${instances[3]}"
        rc=0
        wait "$pid" || rc=$?
        [ "$rc" -eq 1 ] || fail "SIG$signal to an instance: exit status $rc, expected 1" "$work/stderr"
        one_line "SIG$signal to an instance"
        says "SIG$signal to an instance" "requests failed: lost instance 4 ("
        for pid in "${instances[@]}"; do
            ! kill -0 "$pid" 2>/dev/null || fail "SIG$signal to an instance: process $pid is left"
        done
        [ -z "$(find "$work" -name '*.tmp-*')" ] || fail "SIG$signal to an instance: a temporary folder is left"
        rm -rf "$work/lost"
        ok "SIG$signal to an instance: $(cut -c 1-150 "$work/stderr")"
    done
else
    skip_part "no libfabric with tcp: failing emulations cannot be tested"
fi
finish
