#!/bin/bash
# The CPU runner of the CUDA sources: its own kernels pass in every kind and order, and all their lines run; then the project's
# kernels. Those are many: plain in three orders always; every other kind takes minutes, so it is done when a file that they or
# their tests are built from differs from what that kind last passed with (kernels/checked.digest; without a line there asan and
# cov run, tsan and msan are on demand).
# cuda_runner.sh --write: every kind in all its orders (SMG_CUDA_KINDS: only these), and keeps the digest of those that pass (make
# cuda-checked).
set -uo pipefail

if [ "${SMG_CUDA_RUNNER:-no}" = no ]; then
    echo "skip: ${SMG_CUDA_WHY:-no CUDA headers or no C++ compiler}"
    exit 77
fi
if [ -n "${SMG_SAN_CFLAGS:-}" ] && [ "${1:-}" != --write ]; then
    echo "builds in its own ways, whatever the configuration: left to the build without sanitizers"
    exit 0
fi
folder=$top_builddir/cuda-check
digest_file=$top_srcdir/kernels/checked.digest
passed=0 failed=0 skipped=0 unchanged=0

# one NAME KIND SOURCE...
one() {
    local name=$1 kind=$2 rc=0
    shift 2
    "$BASH" "$top_srcdir/kernels/runner/sanitize.sh" "$kind" "$folder/$name" "$@" || rc=$?
    case $rc in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
    return "$rc"
}

# What the digest covers: the sources, the runner and its harness, and what of kernels/ and tests/ they include, at whatever
# depth. Conditions are not looked at: it may be more than one build reads.
covered() {
    local files="" next
    # shellcheck disable=SC2086
    next=$(printf '%s\n' $SMG_CUDA_SOURCES $SMG_CUDA_TESTS kernels/runner/*.cpp kernels/runner/*/*.h kernels/runner/sanitize.* |
        grep -v /selftest/)
    while [ "$next" != "$files" ]; do
        files=$next
        # shellcheck disable=SC2086
        next=$({ echo "$files" && sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' $files; } | LC_ALL=C sort -u) || return
    done
    grep -E '^(kernels|tests)/' <<<"$files"
}

# The same by the compiler's account of the kind plain: nothing that it has read may change unseen.
all_covered() {
    local source missed
    for source in $SMG_CUDA_SOURCES $SMG_CUDA_TESTS; do
        tr -s ' \\' '\n' <"$folder/kernels/plain/$source.d" || return
    done | sed -n "s|^$top_srcdir/\([^:]*\)\$|\1|p" | LC_ALL=C sort -u >"$folder/read" || return
    missed=$(grep -E '^(kernels|tests)/' "$folder/read" | LC_ALL=C comm -23 - <(echo "$covered"))
    [ -z "$missed" ] || echo "included, but not covered by kernels/checked.digest: ${missed//$'\n'/ }"
    [ -s "$folder/read" ] && [ -z "$missed" ]
}

echo "== selftest"
for kind in plain ucontext asan tsan msan cov; do
    # shellcheck disable=SC2086
    one selftest $kind $SMG_SELFTEST
done

echo "== kernels"
covered=$(cd "$top_srcdir" && covered) || exit 1
digest=$(cd "$top_srcdir" && xargs sha256sum <<<"$covered" | sha256sum | cut -d' ' -f1) || exit 1
kept=
for kind in ${SMG_CUDA_KINDS:-plain asan tsan msan cov}; do
    unset SMG_CUDA_RUNS
    if [ "${1:-}" != --write ]; then
        if [ $kind = plain ]; then
            export SMG_CUDA_RUNS="fwd rev rand:1"
        elif [[ $kind = [tm]san ]] && ! grep -q "^$kind " "$digest_file" 2>/dev/null; then
            echo "$kind: on demand (make check-cuda-$kind)"
            continue
        elif grep -qx "$kind $digest" "$digest_file" 2>/dev/null; then
            echo "$kind: the kernels and their tests are unchanged since all passed"
            unchanged=$((unchanged + 1))
            continue
        elif [ $kind = asan ]; then
            export SMG_CUDA_RUNS=rand:1
        fi
    fi
    # shellcheck disable=SC2086
    one kernels $kind $SMG_CUDA_SOURCES $SMG_CUDA_TESTS || continue
    if [ $kind = plain ] && ! all_covered; then
        failed=$((failed + 1))
        continue
    fi
    kept="$kept$kind $digest
"
done
echo "$passed kinds passed, $failed failed, $skipped skipped, $unchanged unchanged"
[ "$failed" -eq 0 ] || exit 1
[ "${1:-}" = --write ] || exit 0
for kind in plain asan tsan msan cov; do # of kinds that were not asked for, what is there stays
    case " ${SMG_CUDA_KINDS:-$kind} " in *" $kind "*) ;; *) kept="$kept$(grep "^$kind " "$digest_file" 2>/dev/null)
" ;; esac
done
printf '%s' "$kept" | sed '/^$/d' >"$digest_file"
