#!/bin/bash
# sanitize.sh KIND FOLDER SOURCE...: builds a test program of CUDA (.cu) and C (.c) sources in one kind, in FOLDER/KIND, and runs
# it in several orders of threads and blocks. SOURCE is relative to the source folder. The program returns 0 when its tests pass.
#
#   plain     gcc, optimised                        ucontext  the same with the portable switch of fibers
#   asan      gcc, address and undefined            tsan      clang, thread: races and missing barriers
#   msan      clang, memory: reads of the unwritten cov       gcc, unoptimised: every line of a .cu file must have run
#   gpu       nvcc and the CUDA runtime: for a machine with a GPU
#
# Environment, all optional: SMG_CUDA_RUNS (orders: "fwd rev rand:SEED ...", for tsan also with @block: a block counts as one
# thread, for races between blocks; cuda_cpu_grid.cpp says why), SMG_CUDA_DEFINES, SMG_CUDA_ARGUMENTS (for the
# program), SMG_CUDA_RUNNER_OUT (folder of the runner's objects), CUDA_CPPFLAGS, TEST_CPPFLAGS, TEST_LIBS, top_srcdir,
# top_builddir; for gpu NVCC, CUDART_LIBS, CUDA_GENCODE.
# Exit status: 0 all passed, 1 something failed, 77 this kind cannot be built here (one line says why).
set -uo pipefail

kind=$1 folder=$2
shift 2
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
mkdir -p "$folder/$kind" || exit 1
out=$(cd "$folder/$kind" && pwd)
jobs=$(nproc 2>/dev/null || echo 2)

skip() {
    echo "skip: $kind: $1"
    exit 77
}

cc=gcc cxx=g++ flags= runner_defines= runs="fwd rev rand:1"
case $kind in
plain) flags=-O2 runs="fwd rev rand:1 rand:2 rand:3 rand:4" ;;
ucontext) flags=-O2 runner_defines=-DSMG_CUDA_UCONTEXT runs="fwd rand:1" ;;
asan) flags="-O1 -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
tsan) cc=clang cxx=clang++ flags="-O1 -fsanitize=thread" runs="fwd rev rand:1 fwd@block rand:1@block" ;;
msan) cc=clang cxx=clang++ flags="-O1 -fsanitize=memory" ;;
cov) flags="-O0 --coverage" runs=fwd ;;
gpu) flags=-O2 runs=fwd ;;
*)
    echo "$0: unknown kind '$kind': expected plain, ucontext, asan, tsan, msan, cov or gpu" >&2
    exit 1
    ;;
esac
runs=${SMG_CUDA_RUNS:-$runs}
for tool in $cc $cxx; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
if [ "$kind" = gpu ]; then
    [ -n "${NVCC:-}" ] || skip "no nvcc"
    flags="$flags -DSMG_CUDA_GPU"
elif ! echo '#include <cuda_runtime_api.h>' |
    $cxx ${CUDA_CPPFLAGS:=-isystem /usr/local/cuda/include} -fsyntax-only -x c++ - 2>/dev/null; then
    skip "no CUDA headers"
fi

# The make that runs this script has options of its own, not meant for this one.
if ! env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u CXXFLAGS make -j"$jobs" -s -f "$top/kernels/runner/sanitize.mk" \
    KIND="$kind" KIND_FLAGS="$flags" CC="$cc" CXX="$cxx" NVCC="${NVCC:-}" SOURCES="$*" \
    TOP="$top" BUILD="${top_builddir:-}" OUT="$out" RUNNER_OUT="${SMG_CUDA_RUNNER_OUT:-$out}" \
    DEFINES="${SMG_CUDA_DEFINES:-}" RUNNER_DEFINES="$runner_defines" CUDA_CPPFLAGS="${CUDA_CPPFLAGS:-}" \
    TEST_CPPFLAGS="${TEST_CPPFLAGS:-}" TEST_LIBS="${TEST_LIBS:-}" CUDART_LIBS="${CUDART_LIBS:-}" \
    CUDA_GENCODE="${CUDA_GENCODE:-}" "$out/program" >"$out/build.log" 2>&1; then
    echo "$kind: does not build:"
    cat "$out/build.log"
    exit 1
fi

# Sanitizers end a program with a status of their own; the memory sanitizer's default would read as a skip.
export ASAN_OPTIONS="detect_stack_use_after_return=0:exitcode=86" UBSAN_OPTIONS="print_stacktrace=1:exitcode=86"
export TSAN_OPTIONS="exitcode=86" MSAN_OPTIONS="exitcode=86"
fixed=
case $kind in
tsan | msan)
    # Shadow memory needs its place in the address space, which randomization of many bits may take.
    ! setarch "$(uname -m)" -R true 2>/dev/null || fixed="setarch $(uname -m) -R"
    ;;
esac

status=0
for run in $runs; do
    log=$out/run-$run.log rc=0 identity=thread
    [[ $run != *@block ]] || identity=block
    order=${run%@block} seed=0
    [[ $order != *:* ]] || seed=${order#*:}
    # shellcheck disable=SC2086
    SMG_CUDA_ORDER=${order%:*} SMG_CUDA_SEED=$seed SMG_CUDA_IDENTITY=$identity $fixed \
        "$out/program" ${SMG_CUDA_ARGUMENTS:-} >"$log" 2>&1 || rc=$?
    if [ "$rc" -eq 77 ]; then
        skip "$(tail -n 1 "$log")"
    elif [ "$rc" -ne 0 ]; then
        echo "$kind, $run: status $rc"
        cat "$log"
        status=1
        break
    fi
    echo "$kind, $run: $(tail -n 1 "$log")"
done
[ "$kind" = cov ] && [ "$status" -eq 0 ] || exit "$status"

# Lines of .cu and .cuh files that never ran. A template's line has run when it has in one instance; a header's, in one user.
cd "$out" || exit 1
for source in "$@"; do
    case $source in
    *.cu) gcov --stdout "$out/$source.gcno" ;;
    esac
done 2>&1 | awk -v top="$top/" '
    / 0:Source:/ { sub(/.*Source:/, ""); file = $0; wanted = /\.cuh?$/; sub("^" top, "", file); next }
    wanted && match($0, /^ *[^:]+: *[0-9]+:/) {
        split($0, part, ":"); count = part[1]; line = part[2] + 0
        gsub(/[ *]/, "", count)
        if (line == 0 || count == "-") next
        key = file ":" line
        if (!(key in ran)) { ran[key] = 0; n++; order[n] = key; text[key] = substr($0, RLENGTH + 1) }
        if (count !~ /^[#=]/) ran[key] = 1
    }
    END {
        for (i = 1; i <= n; i++) if (!ran[order[i]]) { print order[i] ": never runs:" text[order[i]]; bad++ }
        if (n == 0) { print "cov: no line of a .cu file found"; exit 1 }
        printf "cov: %d of %d lines of CUDA sources ran\n", n - bad, n
        exit bad > 0
    }' || exit 1
