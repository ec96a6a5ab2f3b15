#!/bin/bash
# smartgen kernels measure: writes hardware files that a simulation takes, and whose values it follows. What the times are is
# nobody's business here: no check depends on them. A machine that does other work can bend the times so far that no line goes
# through them, which the program refuses; then it is asked again.
. "$top_srcdir/tests/e2e/lib.sh"

small=$top_srcdir/tests/e2e/small.yaml
dir=$work/machine

# measured CHECK ARGUMENT...: a quick measurement that succeeds.
measured() {
    local what=$1 try
    shift
    for try in 1 2 3 4 5; do
        smg kernels measure --quick "$@"
        [ "$rc" -eq 1 ] && grep -q 'no straight line' "$work/stderr" || break
    done
    [ "$rc" -eq 0 ] || fail "$what: exit status $rc" "$work/stderr"
}

# field FILE KEY PART: what a hardware file says.
field() {
    awk -v key="\"$2\": {" -v part="\"$3\": " '
        index($0, key) { inside = 1 }
        inside && (at = index($0, part)) {
            text = substr($0, at + length(part)); sub(/,$/, "", text); gsub(/^"|"$/, "", text); print text; exit
        }' "$1"
}

# edit FILE KEY VALUE: puts another value there.
edit() {
    awk -v key="\"$2\": {" -v value="$3" '
        index($0, key) { inside = 1 }
        inside && index($0, "\"value\": ") { sub(/"value": .*/, "\"value\": " value ","); inside = 0; done = 1 }
        { print }
        END { exit !done }' "$1" >"$work/edited" || fail "$1 has no $2" "$1"
    mv "$work/edited" "$1"
}

# ---- Wrong input: one line, exit 2, nothing made ----
# refused CHECK TEXT -- ARGUMENT...
refused() {
    local what=$1 text=$2
    shift 3
    must "$what" 2 "$@"
    one_line "$what"
    says "$what" "$text"
    [ ! -s "$work/stdout" ] || fail "$what: prints on standard output" "$work/stdout"
    [ ! -e "$dir" ] || fail "$what: $dir is there"
}
refused "no action" "missing operand: 'ACTION" -- kernels
refused "another action" "unknown action 'mesure'; did you mean 'measure'?" -- kernels mesure
refused "unknown backend" "--backend: no kernel backend 'cpus'; there are reference, cpu" -- kernels measure --quick --backend cpus -o "$dir"
says "unknown backend" "did you mean 'cpu'?"
refused "an option of another action" "measure takes no --heads" -- kernels measure --quick --heads 4 -o "$dir"
refused "a folder for another action" "quality takes no --output" -- kernels quality -o "$dir"
refused "a scenario for another action" "unexpected operand '$small'" -- kernels list "$small"
refused "unknown option" "did you mean '--backend'?" -- kernels measure --backed cpu -o "$dir"
refused "no scenario" "$work/none.yaml" -- kernels measure "$work/none.yaml" --quick -o "$dir"
refused "two scenarios" "unexpected operand" -- kernels measure "$small" "$small" --quick -o "$dir"
refused "unknown host" "key 'host': unknown host 'defalt'; did you mean 'default'?" -- kernels measure --quick --set host=defalt -o "$dir"
if "$SMARTGEN" kernels --help | grep -q -- '--backend .*cuda'; then
    skip_part "built with CUDA: what is said without it"
else
    refused "cuda" "kernel backend 'cuda' is not built in" -- kernels measure --quick --backend cuda -o "$dir"
fi
mkdir "$work/foreign"
echo mine >"$work/foreign/gpu.json"
refused "a folder of other things" "$work/foreign: not empty, and not a folder of measurements" -- kernels measure --quick -o "$work/foreign"
[ "$(cat "$work/foreign/gpu.json")" = mine ] || fail "the file in a folder of other things is not what it was"
echo 1,2,3 >"$work/foreign/measurements.csv"
refused "another measurements.csv" "not a folder of measurements" -- kernels measure --quick -o "$work/foreign"
refused "a file in the way" "Not a directory" -- kernels measure --quick -o "$work/foreign/gpu.json/here"
leaves "refused measurements" "$work/foreign" gpu.json$'\n'measurements.csv
ok "wrong words, names, scenarios and folders are refused, and nothing is made"

# ---- Files ----
measured "a quick measurement" "$small" -o "$dir"
leaves "a measurement" "$dir" gpu.json$'\n'host.json$'\n'measurements.csv
for text in 'select ' 'split ' 'attention ' 'unpack ' 'gather ' 'gather_exponent ' "decode.gpu=$dir/gpu.json"; do
    grep -q "^$text\|$text" "$work/stdout" || fail "a quick measurement does not print '$text'" "$work/stdout"
done
ours="smartgen kernels measure --backend cpu --quick, smartgen $("$SMARTGEN" --version | sed -n 's/^smartgen //p'), on "
for key in select_Bps split_Bps hack_unpack_Bps select_overhead_s split_overhead_s; do
    [[ "$(field "$dir/gpu.json" $key source)" == "$ours"* ]] || fail "gpu.json: source of $key" "$dir/gpu.json"
    [[ "$(field "$dir/gpu.json" $key derivation)" == "kernel "*"R2 "*"as if it were the GPU"*"rough"* ]] ||
        fail "gpu.json: derivation of $key" "$dir/gpu.json"
done
for key in gather_Bps_per_vcpu gather_exponent; do
    [[ "$(field "$dir/host.json" $key source)" == "$ours"* ]] || fail "host.json: source of $key" "$dir/host.json"
done
for key in peak_flops pcie_Bps hack_layer_overhead_s; do
    [[ "$(field "$dir/gpu.json" $key derivation)" == "not measured here; from GPU 'gpu'"* ]] || fail "gpu.json: derivation of $key" "$dir/gpu.json"
done
awk -v x="$(field "$dir/gpu.json" pcie_Bps value)" 'BEGIN { exit !(x == 6e9) }' || fail "gpu.json: pcie_Bps is not that of the scenario's GPU" "$dir/gpu.json"
must "the reader of GPUs" 0 plan "$small" --set decode.gpu="$dir/gpu.json" --set host="$dir/host.json" --json
[ "$(head -n 1 "$dir/measurements.csv")" = what,kernel,threads,requests,tokens,rows,k,bytes,seconds,error_s,fitted_s,samples,calls ] ||
    fail "header of measurements.csv" "$dir/measurements.csv"
awk -F, 'NR > 1 { n[$1]++; bad += NF != 13 || !($8 > 0 && $9 > 0 && $10 > 0) }
    END { exit bad || n["select"] < 3 || n["split"] < 3 || n["attention"] < 3 || n["unpack"] < 3 || n["gather"] < 3 }' \
    "$dir/measurements.csv" || fail "measurements.csv" "$dir/measurements.csv"
ok "gpu.json, host.json and measurements.csv, each value with its origin; the readers take them"

# Once more into the same folder, from its own files: what is not measured still says where it comes from, once.
measured "a measurement on top" "$small" -o "$dir" --set decode.gpu="$dir/gpu.json" --set host="$dir/host.json" --quiet
[ ! -s "$work/stdout" ] || fail "--quiet prints" "$work/stdout"
leaves "a measurement on top" "$dir" gpu.json$'\n'host.json$'\n'measurements.csv
[ "$(field "$dir/gpu.json" peak_flops derivation | grep -o "not measured" | wc -l)" -eq 1 ] || fail "the origin of peak_flops" "$dir/gpu.json"
measured "without a folder" "$small" --json
for text in '"key": "select_Bps"' '"now_key": "memory_Bps"' '"what": "gather"' '"kernel": "scores"'; do
    grep -qF "$text" "$work/stdout" || fail "--json has no $text" "$work/stdout"
done
measured "HATA" "$small" --set selector=hata
grep -q '^select  *hash_scores ' "$work/stdout" || fail "HATA" "$work/stdout"
measured "Quest" "$small" --set selector=quest
grep -q '^select  *page_scores ' "$work/stdout" || fail "Quest" "$work/stdout"
measured "HATA with odd codes" "$small" --set selector=hata --set selection.hash_bits=40 -o "$work/odd"
grep -q '^select_Bps .*not written: kernels take selection.hash_bits' "$work/stdout" || fail "HATA with odd codes" "$work/stdout"
[ -z "$(field "$work/odd/gpu.json" select_Bps value)" ] || fail "a value that is not measured and that no file has" "$work/odd/gpu.json"
measured "the reference" "$small" --backend reference
grep -q '; reference' "$work/stdout" || fail "the reference" "$work/stdout"
ok "on top of an earlier one; --quiet, --json; other selectors; the reference"

# ---- The simulation follows the files ----
# spans NAME FOLDER: number and sum of the durations of a timeline's spans, us.
spans() {
    awk -v name="\"name\":\"$1\"" 'index($0, name) && match($0, /"dur":[0-9.e+-]+/) {
            n++; sum += substr($0, RSTART + 6, RLENGTH - 6)
        } END { printf "%d %.6f\n", n, sum }' "$2/timeline.json"
}
# run NAME: a simulation with the files of $dir, in which nothing that is selected or local depends on time.
run() {
    must "simulation $1" 0 sim "$small" --engine native --timeline --set decode.gpu="$dir/gpu.json" --set host="$dir/host.json" \
        --set speculative.enabled=false --set on_demand.reuse=false --set decode.start=pushed --set proactive.kr_blocks=100 -o "$work/$1"
}
# ratio CHECK SPANS FIXED_US WANTED: sum of durations of `after` over `before`, fixed parts taken off; spans are written in ns.
ratio() {
    local n before m after
    read -r n before < <(spans "$2" "$work/before")
    read -r m after < <(spans "$2" "$work/after")
    [ "$n" -gt 0 ] && [ "$n" -eq "$m" ] || fail "$1: $n and $m spans"
    awk -v n="$n" -v a="$before" -v b="$after" -v fixed="$3" -v wanted="$4" 'BEGIN {
        r = (b - n * fixed) / (a - n * fixed); exit !(r > wanted * 0.999 && r < wanted * 1.001) }' ||
        fail "$1: $n spans take $before us, then $after us: not $4 times"
}
edit "$dir/gpu.json" select_Bps 1e7
edit "$dir/gpu.json" select_overhead_s 1e-3
edit "$dir/gpu.json" split_Bps 2e7
edit "$dir/gpu.json" split_overhead_s 0
edit "$dir/host.json" gather_Bps_per_vcpu 1e7
edit "$dir/host.json" gather_exponent 0.5
run before
edit "$dir/gpu.json" select_Bps 0.5e7
must "a rate below the range" 2 plan --set decode.gpu="$dir/gpu.json"
edit "$dir/gpu.json" select_Bps 2e7
edit "$dir/gpu.json" split_Bps 1e7
edit "$dir/host.json" gather_exponent 1
run after
ratio "select twice as fast" select 1000 0.5
ratio "split half as fast" split 0 2
# 16 vCPUs: 16^1 / 16^0.5.
ratio "gather with another exponent" local_gather 0 0.25
edit "$dir/gpu.json" select_overhead_s 3e-3
run after
read -r n before < <(spans select "$work/before")
read -r n after < <(spans select "$work/after")
awk -v n="$n" -v a="$before" -v b="$after" 'BEGIN { d = (b - 3000 * n) / (a - 1000 * n); exit !(d > 0.499 && d < 0.501) }' ||
    fail "select with another fixed part: $before us, then $after us"
ok "times of select, split and gather follow the files"

# ---- A disk that takes no more, played by a limit of the file size ----
for try in 1 2 3 4 5; do
    rc=0
    (
        trap '' XFSZ
        ulimit -f 1
        exec "$SMARTGEN" kernels measure "$small" --quick --quiet -o "$work/full"
    ) 2>"$work/stderr" || rc=$?
    grep -q 'no straight line' "$work/stderr" || break
done
sed -i '/^smartgen: warning: /d' "$work/stderr"
[ "$rc" -eq 1 ] || fail "a full disk: exit status $rc, expected 1" "$work/stderr"
one_line "a full disk"
says "a full disk" "$work/full/" "File too large"
[ ! -e "$work/full" ] && ! compgen -G "$work/full.tmp-*" >/dev/null || fail "a full disk: something is left"
ok "a full disk: exit 1, the file is named, nothing is left"

# ---- Ended by a signal: nothing is left ----
"$SMARTGEN" kernels measure "$small" -o "$work/ended" >"$work/stdout" 2>"$work/stderr" &
child=$!
for _ in $(seq 1000); do
    ! compgen -G "$work/ended.tmp-*" >/dev/null || break
    sleep 0.01
done
sleep 0.1
kill -TERM "$child" 2>/dev/null || true
rc=0
wait "$child" || rc=$?
if [ "$rc" -eq 0 ]; then
    skip_part "the measurement was done before the signal came"
else
    [ "$rc" -eq 1 ] || fail "ended by a signal: exit status $rc" "$work/stderr"
    [ ! -e "$work/ended" ] && ! compgen -G "$work/ended.tmp-*" >/dev/null || fail "ended by a signal: a folder is left"
    ok "ended by a signal: exit 1, no folder"
fi
finish
