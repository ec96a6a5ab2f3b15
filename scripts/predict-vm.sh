#!/bin/bash
# predict-vm.sh [-n RUNS]: scripts/predict.sh in the virtual machine of scripts/rdma-vm.sh, over libfabric's tcp and over verbs, each at two rates
# that tc gives the link between its two devices. Prints what was measured, the table, and its mean error. SMARTGEN: the program (default:
# ./smartgen). Takes some minutes on a quiet machine; on a busy one the paced compute of the engine falls behind.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
runs=5
[ "${1:-}" != -n ] || runs=$2
program=${SMARTGEN:-./smartgen}
# A program that is not installed may be a script of libtool beside the real one.
[ "$(head -c 2 "$program")" != '#!' ] || program=$(dirname "$program")/.libs/$(basename "$program")
library=$(ldconfig -p | awk '/libfabric\.so\.1 .*x86-64/ { found = $NF } END { print found }')
[ -n "$library" ] || { echo "predict-vm: libfabric is not installed"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/predict-vm-XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg) on $(nproc) cores"
# Fabric, its two ends, Gbit/s, tokens of the prompt: as long for one rate as for the other, and long beside what an emulated processor takes for
# each layer (some milliseconds). Most of a prompt is cached, so that prefill is no part of it.
for point in "ofi tcp@10.0.0.1,tcp@10.0.0.2 0.02 2048" "verbs rxa,rxb 0.02 2048" "ofi tcp@10.0.0.1,tcp@10.0.0.2 0.04 4096" "verbs rxa,rxb 0.04 4096"; do
    set -- $point
    keys="workload.prompt_tokens=$4 prefix_hit=0.9"
    cat >"$work/script" <<Y
export SMARTGEN_DATA=/src/traces/data
# A bucket of 1 ms (two packets at least): a deeper one would give every message after a pause its first bytes for nothing. Behind it the
# queue pairs take turns, as in an adapter (soft-RoCE has a UDP port for each); in one queue a reply would wait for all pushes before it.
for d in va vb; do
    tc qdisc replace dev \$d root handle 1: tbf rate $(awk "BEGIN { print 1000 * $3 }")mbit \
        burst $(awk "BEGIN { b = 125000 * $3; print (b > 10000 ? b : 10000) }") limit 8m || exit 1
    tc qdisc add dev \$d parent 1: sfq limit 8000 depth 127 flows 256 divisor 1024 || exit 1
done
exec dash /src/scripts/predict.sh -n $runs -x "$keys" $1 $2 $3 /src/experiments/predict.yaml
Y
    SMG_VM_LIMIT=${SMG_VM_LIMIT:-900} "$here/scripts/rdma-vm.sh" -p "$program" -p "$(readlink -f "$library")" \
        -f "$(readlink -f "$library"):/usr/lib/x86_64-linux-gnu/libfabric.so.1" -f "$here/traces/data:/src/traces/data" \
        -f "$here/scripts/predict.sh:/src/scripts/predict.sh" -f "$here/experiments/predict.yaml:/src/experiments/predict.yaml" \
        -f "$here/experiments/predict:/src/experiments/predict" -f "$here/experiments/emu-small:/src/experiments/emu-small" \
        "$work/script" | tee -a "$work/log"
    echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg)"
done
echo
echo "| scheme | fabric | Mbit/s | share of TTST | emu, s | spread | sim, s | error | not measured | bytes only |"
echo "|---|---|---|---|---|---|---|---|---|---|"
sed -n 's/^predict |/|/p' "$work/log"
awk -F'|' '/^predict/ { e = $9 + 0; sum += e < 0 ? -e : e; b = $11 + 0; only += b < 0 ? -b : b; n++ }
    END { if (n) printf "\nmean error of %d: %.1f%%; bytes only: %.1f%%\n", n, sum / n, only / n }' "$work/log"
