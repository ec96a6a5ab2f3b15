#!/bin/bash
# Checks the CUDA kernels on a GPU, in a few minutes: builds them and their tests for it, runs the tests, runs them again
# under compute-sanitizer where it is there, and times every kernel. Stops at the first failure.
#
#     kernels/gpu_check.sh [--build-only] [--out FOLDER]
#
# Needs nvcc, a C compiler, make, GSL and cmocka; nothing of the project has to be configured or built before. --build-only needs
# no GPU. Results are in FOLDER (build-gpu): logs, and gpu_check.json.
# Environment: NVCC, CC, SMG_GPU_ARCH (sm_90, ...; otherwise that of the first GPU), CMOCKA_CFLAGS, CMOCKA_LIBS, GSL_CFLAGS,
# GSL_LIBS, SMG_GPU_CFLAGS (more options for the C compiler).
# Exit status: 0 all passed; 1 something failed or is missing; 2 usage; 77 no GPU (all was built).
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build_only=no out=$top/build-gpu
while [ $# -gt 0 ]; do
    case $1 in
    --build-only) build_only=yes ;;
    --out) [ $# -gt 1 ] || { echo "$0: --out needs a folder" >&2; exit 2; }
        out=$2
        shift ;;
    *)
        echo "usage: $0 [--build-only] [--out FOLDER]" >&2
        exit 2
        ;;
    esac
    shift
done
mkdir -p "$out/log" && out=$(cd "$out" && pwd) || exit 1
cd "$top" || exit 1
jobs=$(nproc 2>/dev/null || echo 2)

die() {
    echo "gpu_check: $1" >&2
    exit 1
}

# step NAME COMMAND...: runs it with its output in a log, says how long it took; ends everything when it fails.
step() {
    local name=$1 log=$out/log/${1// /-}.log start=$EPOCHREALTIME rc=0
    shift
    printf '%-44s ' "$name"
    "$@" >"$log" 2>&1 </dev/null || rc=$?
    if [ "$rc" -ne 0 ]; then
        echo "FAILED with status $rc; the end of $log:"
        tail -n 40 "$log"
        exit 1
    fi
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "ok, %.1f s\n", b - a }'
}

# ---- What is needed ----
nvcc=${NVCC:-$(PATH=${CUDA_HOME:+$CUDA_HOME/bin:}$PATH:/usr/local/cuda/bin command -v nvcc || true)}
cc=${CC:-cc}
[ -n "$nvcc" ] || die "no nvcc in CUDA_HOME, PATH or /usr/local/cuda: install the CUDA toolkit or set NVCC"
toolkit=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
[ -n "$toolkit" ] || die "$nvcc does not run"
cuda=$(cd "$(dirname "$(readlink -f "$nvcc")")/.." && pwd)
[ -f "$cuda/include/cuda_runtime_api.h" ] || cuda=/usr
# shellcheck disable=SC2086
command -v ${cc%% *} >/dev/null || die "no C compiler '$cc': install one or set CC"
command -v make >/dev/null || die "no make"
cmocka_cflags=${CMOCKA_CFLAGS:-$(pkg-config --cflags cmocka 2>/dev/null)}
cmocka_libs=${CMOCKA_LIBS:-$(pkg-config --libs cmocka 2>/dev/null || echo -lcmocka)}
gsl_cflags=${GSL_CFLAGS:-$(pkg-config --cflags gsl 2>/dev/null)}
gsl_libs=${GSL_LIBS:-$(pkg-config --libs gsl 2>/dev/null || echo -lgsl -lgslcblas -lm)}
# shellcheck disable=SC2086
printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h | $cc $cmocka_cflags -fsyntax-only -x c - 2>/dev/null ||
    die "no cmocka.h: install cmocka 1.1.5 (libcmocka-dev) or set CMOCKA_CFLAGS and CMOCKA_LIBS"
# shellcheck disable=SC2086
echo '#include <gsl/gsl_linalg.h>' | $cc $gsl_cflags -fsyntax-only -x c - 2>/dev/null ||
    die "no gsl/gsl_linalg.h: install GSL 2.6 (libgsl-dev) or set GSL_CFLAGS and GSL_LIBS"

driver=unknown arch=${SMG_GPU_ARCH:-}
gpu=
if command -v nvidia-smi >/dev/null; then
    gpu=$(nvidia-smi --query-gpu=driver_version,compute_cap --format=csv,noheader 2>/dev/null | head -n 1)
fi
case $gpu in
*,*)
    driver=${gpu%%,*}
    arch=${arch:-sm_$(echo "${gpu##*,}" | tr -d ' .')}
    ;;
esac
arch=${arch:-sm_90}
echo "toolkit $toolkit, driver $driver, $arch"

# ---- Build ----
# What the library is made of, and its tests on all backends.
c_sources=$(awk '/^libsmgkernels_la_SOURCES/ { on = 1 } on { print } on && !/\\$/ { exit }' kernels/local.mk |
    tr -s ' \\\t' '\n' | grep '\.c$')
cu_sources=$(cd kernels && ls ./*.cu | sed 's|^\./|kernels/|')
tests=$(grep -l FOR_EACH_BACKEND tests/test_kernels_*.c | sed 's|\.c$||')
# What the tests use of other rooms: emu/content.h means emu/content.c.
others=$(sed -n 's|^#include "\(emu/[a-z_0-9]*\)\.h".*|\1.c|p' tests/test_kernels_*.c | LC_ALL=C sort -u)
[ -n "$c_sources" ] && [ -n "$tests" ] || die "no sources"

build() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -j"$jobs" -f - OUT="$out" TOP="$top" NVCC="$nvcc" CC="$cc" ARCH="$arch" \
        CUDA="$cuda" C_SOURCES="$(echo $c_sources $others core/*.c)" CU_SOURCES="$(echo $cu_sources)" TESTS="$(echo $tests)" \
        LIBS_CFLAGS="$cmocka_cflags $gsl_cflags" CMOCKA_LIBS="$cmocka_libs" GSL_LIBS="$gsl_libs" all <<'END_OF_MAKEFILE'
CFLAGS = -std=c11 -O3 -g -pthread -ffp-contract=off -Wno-psabi -D_GNU_SOURCE= -DSMG_KERNEL_TEST_CUDA \
	-DSMG_TESTDIR='"$(TOP)/tests"' -I$(TOP) -isystem $(CUDA)/include $(LIBS_CFLAGS) $(SMG_GPU_CFLAGS)
NVCCFLAGS = -std=c++17 -O3 -lineinfo -arch=$(ARCH) -Werror all-warnings -Xcompiler -Wall,-Wextra,-ffp-contract=off \
	-Xptxas -warn-spills,-Werror -I$(TOP)
LIBRARY = $(C_SOURCES:%.c=$(OUT)/%.o) $(CU_SOURCES:%.cu=$(OUT)/%.cu.o)
BENCH = $(OUT)/kernels/gpu_bench.o $(OUT)/kernels/gpu_bench_cases.o $(OUT)/kernels/gpu_bench_memory.o

.SECONDARY: $(TESTS:%=$(OUT)/%.o)
all: $(TESTS:%=$(OUT)/%) $(OUT)/gpu_bench

$(OUT)/library.a: $(LIBRARY)
	rm -f $@ && ar rcs $@ $^
$(OUT)/gpu_bench: $(BENCH) $(OUT)/library.a
	$(NVCC) -arch=$(ARCH) -o $@ $^ $(GSL_LIBS) -lm -lpthread
$(OUT)/tests/%: $(OUT)/tests/%.o $(OUT)/library.a
	$(NVCC) -arch=$(ARCH) -o $@ $^ $(CMOCKA_LIBS) $(GSL_LIBS) -lm -lpthread
$(OUT)/%.o: $(TOP)/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<
$(OUT)/%.cu.o: $(TOP)/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MD -MF $(@:.o=.d) -c -o $@ $<
-include $(LIBRARY:.o=.d) $(BENCH:.o=.d) $(TESTS:%=$(OUT)/%.d)
END_OF_MAKEFILE
}
step "build" build
[ "$build_only" = no ] || exit 0

"$out/gpu_bench" --probe >"$out/log/probe.log" 2>&1
case $? in
0) cat "$out/log/probe.log" ;;
77)
    echo "no GPU: $(tail -n 1 "$out/log/probe.log")"
    exit 77
    ;;
*) die "$(tail -n 1 "$out/log/probe.log")" ;;
esac

# ---- Correct? ----
for test in $tests; do
    step "$(basename "$test")" timeout 60 "$out/$test"
done

# ---- Memory, races, initialisation, barriers ----
sanitizer=$(PATH=$cuda/bin:$PATH command -v compute-sanitizer || true)
if [ -z "$sanitizer" ]; then
    echo "skip: compute-sanitizer is not in $cuda/bin or PATH"
else
    for tool in memcheck racecheck initcheck synccheck; do
        for test in $tests; do
            step "$tool $(basename "$test")" timeout 120 "$sanitizer" --tool "$tool" --error-exitcode 1 --report-api-errors no \
                "$out/$test"
        done
    done
fi

# ---- Fast? ----
printf '%-44s ' "timing"
"$out/gpu_bench" --driver "$driver" --toolkit "$toolkit" --json "$out/gpu_check.json" >"$out/log/timing.log" 2>&1 ||
    { cat "$out/log/timing.log"; die "timing failed"; }
echo "ok"
cat "$out/log/timing.log"
echo "all passed; $out/gpu_check.json"
