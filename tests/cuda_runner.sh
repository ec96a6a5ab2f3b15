#!/bin/bash
# The CPU runner of the CUDA sources: its own kernels pass in every kind and order, and all their lines run; then the project's
# kernels.
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
passed=0 failed=0 skipped=0

# every_kind NAME SOURCE...
every_kind() {
    local name=$1 kind rc
    shift
    echo "== $name"
    for kind in plain ucontext asan tsan msan cov; do
        # Kernels are many: three kinds of them here. make check-cuda-tsan and check-cuda-msan take minutes, so they run on demand.
        unset SMG_CUDA_RUNS
        if [ "$name" = kernels ]; then
            case $kind in
            plain) export SMG_CUDA_RUNS="fwd rev rand:1" ;;
            asan) export SMG_CUDA_RUNS=rand:1 ;;
            cov) ;;
            *) continue ;;
            esac
        fi
        rc=0
        "$BASH" "$top_srcdir/kernels/runner/sanitize.sh" "$kind" "$folder/$name" "$@" || rc=$?
        case $rc in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
        esac
    done
}

# shellcheck disable=SC2086
every_kind selftest $SMG_SELFTEST
# shellcheck disable=SC2086
[ -z "$SMG_CUDA_TESTS" ] || every_kind kernels $SMG_CUDA_SOURCES $SMG_CUDA_TESTS
echo "$passed kinds passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
