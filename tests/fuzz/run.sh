#!/bin/bash
# run.sh FOLDER SECONDS JOBS ONLY TARGET...: runs fuzz targets (programs built with --enable-fuzzing), JOBS at a time, SECONDS each,
# and prints a table. ONLY, unless empty, names the targets to run, without fuzz_. Works in FOLDER/work: the corpus is copied there,
# what is found is added to the copy. Exit status 1: a target found something; the input that shows it is kept and named.
set -uo pipefail

folder=$1 seconds=$2 jobs=$3 only=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
work=$folder/work
mkdir -p "$work"

# What one input may take: 10 s, 256 MiB in one piece, 1 GiB in all.
options=(-timeout=10 -malloc_limit_mb=256 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=1)

# run_one PROGRAM
run_one() {
    local program=$1 name=${1##*/fuzz_} place dict=()
    place=$work/$name
    rm -rf "$place"
    mkdir -p "$place/corpus" "$place/tmp"
    cp "$here/corpus/$name"/* "$place/corpus" 2>/dev/null
    [ ! -f "$here/$name.dict" ] || dict=(-dict="$here/$name.dict")
    TMPDIR=$(cd "$place/tmp" && pwd) "$program" "${options[@]}" "${dict[@]}" -max_total_time="$seconds" -artifact_prefix="$place/" \
        "$place/corpus" >"$place/log" 2>&1 </dev/null
    echo $? >"$place/rc"
}

# last PLACE PATTERN: the number behind the last match
last() {
    grep -oE "$2 *[0-9]+" "$1/log" | tail -n 1 | grep -oE '[0-9]+$' || echo -
}

report() {
    local name=$1 place=$work/$1 rc result input
    rc=$(cat "$place/rc" 2>/dev/null || echo 255)
    result=ok
    if [ "$rc" -ne 0 ]; then
        input=$(find "$place" -maxdepth 1 \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' -o -name 'oom-*' \) | head -n 1)
        result="FOUND ${input:-status $rc, see $place/log}"
    fi
    printf '%-16s %12s %10s %9s %9s  %s\n' "$name" "$(last "$place" number_of_executed_units:)" \
        "$(last "$place" average_exec_per_sec:)" "$(last "$place" cov:)" "$(last "$place" peak_rss_mb:)" "$result"
    [ "$rc" -eq 0 ] || {
        grep -m 1 -E 'ERROR: |runtime error: |does not hold' "$place/log" | cut -c 1-200 | sed 's/^/    /'
        return 1
    }
}

chosen=()
for program in "$@"; do
    name=${program##*/fuzz_}
    [ -z "$only" ] || [[ " $only " == *" $name "* ]] || continue
    chosen+=("$program")
done
[ ${#chosen[@]} -gt 0 ] || {
    echo "no fuzz target is called $only" >&2
    exit 2
}

for program in "${chosen[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    run_one "$program" &
done
wait

printf '%-16s %12s %10s %9s %9s  %s\n' target executions exec/s coverage "peak MiB" result
bad=0
for program in "${chosen[@]}"; do
    report "${program##*/fuzz_}" || bad=$((bad + 1))
done
echo "$((${#chosen[@]} - bad)) passed, $bad failed: targets that found nothing in $seconds s, and that found something"
[ "$bad" -eq 0 ]
