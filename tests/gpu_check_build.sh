#!/bin/bash
# kernels/gpu_check.sh --build-only builds what a GPU will run; the timing program's cases are accepted by the kernels; without a
# GPU the script says so.
set -euo pipefail

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
if [ -z "${NVCC:-}" ] && ! PATH=${CUDA_HOME:+$CUDA_HOME/bin:}$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    echo "skip: no nvcc"
    exit 77
fi
if [ -n "${SMG_SAN_CFLAGS:-}" ]; then
    echo "skip: it builds by itself, without sanitizers: once is enough"
    exit 77
fi
unset CC
# What runs here is only looked at: compiled fast.
export SMG_GPU_CFLAGS="-O0 -g0"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"$top_srcdir/kernels/gpu_check.sh" --build-only --out "$out"
for program in "$out"/gpu_bench "$out"/tests/test_kernels_importance; do
    [ -x "$program" ] || { echo "$program: not built"; exit 1; }
done

# Every kernel, with small sizes, on the backends of the host.
for backend in reference cpu; do
    "$out/gpu_bench" --backend "$backend" --small --json "$out/$backend.json" --driver 'a "b"' >"$out/table"
    n=$(grep -c '"share_of_copy"' "$out/$backend.json")
    kernels=$(sed -n 's/^ *X(\([a-z_]*\), .*/\1/p' "$top_srcdir/kernels/smg_kernels.h" | wc -l)
    if [ "$n" -ne "$kernels" ] || [ "$kernels" -eq 0 ]; then
        echo "$backend: $n kernels timed, $kernels are in kernels/smg_kernels.h"
        exit 1
    fi
done
rc=0
"$out/gpu_bench" --frob 2>/dev/null || rc=$?
[ "$rc" -eq 2 ] || { echo "an unknown option: status $rc, expected 2"; exit 1; }

# Nothing visible, so no GPU, also where there is one.
rc=0
CUDA_VISIBLE_DEVICES= "$top_srcdir/kernels/gpu_check.sh" --out "$out" >"$out/said" 2>&1 || rc=$?
if [ "$rc" -ne 77 ] || ! grep -q '^no GPU' "$out/said"; then
    echo "without a GPU: status $rc, expected 77 and a line 'no GPU: ...'; it said:"
    cat "$out/said"
    exit 1
fi
echo "built, $kernels kernels accepted"
