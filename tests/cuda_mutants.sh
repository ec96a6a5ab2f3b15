#!/bin/bash
# Each bug of kernels/runner/mutants.txt, planted in the selftest's kernels, is caught by the steps named for it. That takes
# minutes and depends on kernels/runner/ alone, so it is done when a file there differs from what the last complete run saw
# (mutants.digest).
# cuda_mutants.sh --write: does it in any case, and keeps the digest when all are caught (make cuda-mutants).
set -uo pipefail

if [ "${SMG_CUDA_RUNNER:-no}" = no ]; then
    echo "skip: ${SMG_CUDA_WHY:-no CUDA headers or no C++ compiler}"
    exit 77
fi
if [ -n "${SMG_SAN_CFLAGS:-}" ] && [ "${1:-}" != --write ]; then
    echo "builds in its own ways, whatever the configuration: left to the build without sanitizers"
    exit 0
fi
runner=$top_srcdir/kernels/runner
digest_file=$runner/mutants.digest
folder=$top_builddir/cuda-check/mutants
jobs=$(nproc 2>/dev/null || echo 2)

digest=$(cd "$runner" && find . -type f \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.mk' -o -name '*.sh' \
    -o -name '*.txt' \) -print | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
if [ "${1:-}" != --write ] && [ "$digest" = "$(cat "$digest_file" 2>/dev/null)" ]; then
    echo "kernels/runner is unchanged since all mutants were caught"
    exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"

# sanitize KIND FOLDER ORDER DEFINES
sanitize() {
    # shellcheck disable=SC2086
    SMG_CUDA_RUNNER_OUT=$folder/runner-$1 SMG_CUDA_RUNS=$3 SMG_CUDA_DEFINES=$4 \
        "$BASH" "$runner/sanitize.sh" "$1" "$2" $SMG_SELFTEST
}

# mutant NUMBER BUG KIND ORDER PATTERN: one line in its result file.
mutant() {
    local rc=0 log=$folder/$1.log
    sanitize "$3" "$folder/$1" "$4" "-DSMG_BUG_$2" >"$log" 2>&1 || rc=$?
    if [ "$rc" -eq 1 ] && ! grep -q 'does not build:' "$log" && grep -qE "$5" "$log"; then
        echo "caught: $2 by $3, $4" >"$folder/$1.result"
    else
        { echo "NOT CAUGHT: $2 by $3, $4 (status $rc, expected: $5)" && tail -n 20 "$log"; } >"$folder/$1.result"
    fi
    rm -rf "${folder:?}/$1"
}

# Without a bug each kind passes; a kind that cannot be built here catches nothing.
kinds=
skipped=0
for kind in plain asan tsan msan; do
    rc=0
    sanitize "$kind" "$folder/none" fwd "" || rc=$?
    case $rc in
    0) kinds="$kinds $kind " ;;
    77) ;;
    *) exit 1 ;;
    esac
done
n=0
while read -r bug kind order pattern; do
    case $bug in '' | '#'*) continue ;; esac
    if [[ $kinds != *" $kind "* ]]; then
        echo "skipped: $bug by $kind, which cannot be built here"
        skipped=$((skipped + 1))
        continue
    fi
    n=$((n + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    mutant "$n" "$bug" "$kind" "$order" "$pattern" </dev/null &
done <"$runner/mutants.txt"
wait
caught=0
for ((i = 1; i <= n; i++)); do
    cat "$folder/$i.result"
    ! grep -q '^caught' "$folder/$i.result" || caught=$((caught + 1))
done
echo "$caught of $n planted bugs caught, $skipped skipped"
[ "$caught" -eq "$n" ] && [ "$n" -gt 0 ] || exit 1
if [ "${1:-}" = --write ] && [ "$skipped" -eq 0 ]; then
    echo "$digest" >"$digest_file"
fi
