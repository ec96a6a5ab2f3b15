#!/bin/sh
# predict.sh [-n RUNS] [-s "SCHEME..."] [-x "KEY=VALUE..."] FABRIC DEVICE RATE [SCENARIO]: how well the simulator predicts runs of the transfer engine.
#
# Measures the fabric and this host (smartgen emu measure), simulates the scenario with the files that this writes, runs it RUNS times
# (default 5) on the engine, and compares the transfer part of TTST: TTST less the computing of the decode iteration (smartgen compare).
# DEVICE: what --device takes; two, separated by a comma, for the two ends of a link. RATE: what that link is said to carry, Gbit/s.
# SCHEME: of full, partial, smartgen (default: all). KEY=VALUE: scenario keys.
#
# One line per scheme: transfer's share of TTST, median and spread (largest less smallest) of the runs, the simulation and its error, and the
# errors of two models that know nothing of the measurement: the same simulation with the default NIC and host at RATE, and the bytes that are
# pushed and fetched until the second token over RATE. Folders are left in the current one. In a virtual machine: scripts/predict-vm.sh.
set -eu
runs=5 schemes="full partial smartgen" keys=
while getopts n:s:x: option; do
    case $option in
    n) runs=$OPTARG ;;
    s) schemes=$OPTARG ;;
    x) keys=$OPTARG ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
fabric=$1 device=$2 rate=$3 scenario=${4:-$(dirname "$0")/../experiments/predict.yaml}
smartgen=${SMARTGEN:-smartgen}

# value FILE QUANTITY COLUMN: of a comparison, of request 0.
value() {
    awk -F, -v q="$2" -v c="$3" '$1 == 0 && $2 == "" && $3 == q { print $c; exit }' "$1"
}

# run NAME COMMAND...: its words only when it fails.
run() {
    name=$1
    shift
    "$@" >"$name.log" 2>&1 || { echo "predict: $name failed:" >&2; tail -n 5 "$name.log" >&2; exit 1; }
}

common="--set prefill.link_gbps=$rate --set decode.link_gbps=$rate"
for key in $keys; do common="$common --set $key"; done
# Both know the measured rate, which Eq. 2 asks for: they decide alike.
measured="$common --set network.nic=./measured/nic.json --set host=./measured/host.json"

run measure "$smartgen" emu measure --fabric "$fabric" --device "$device" ${SMG_PREDICT_MEASURE:---block 8K,64K --entry-bytes 256} -o measured
cat measure.log
run record "$smartgen" profile "$scenario" $common --record rec.kvsr
for scheme in $schemes; do
    run "sim-$scheme" "$smartgen" sim "$scenario" $measured --set scheme=$scheme --set selection.file=./rec.kvsr -o "sim-$scheme"
    kr=$(awk -F, 'NR == 2 { print $10 }' "sim-$scheme/requests.csv")
    run "plain-$scheme" "$smartgen" sim "$scenario" $common --set scheme=$scheme --set selection.file=./rec.kvsr \
        --set proactive.kr_blocks=$kr -o "plain-$scheme"
    : >"$scheme.values"
    i=0
    while [ $i -lt "$runs" ]; do
        i=$((i + 1))
        run "emu-$scheme-$i" "$smartgen" emu "$scenario" $measured --set scheme=$scheme --set selection.file=./rec.kvsr \
            --fabric "$fabric" --device "$device" --timeout 120 ${SMG_PREDICT_EMU:-} -o "emu-$scheme-$i"
        run "compare-$scheme-$i" "$smartgen" compare "sim-$scheme" "emu-$scheme-$i" -o "$scheme-$i.csv"
        run "compare-plain-$scheme-$i" "$smartgen" compare "plain-$scheme" "emu-$scheme-$i" -o "plain-$scheme-$i.csv"
        # transfer of the run, TTST of the run, transfer simulated, transfer simulated without the measurement
        echo "$(value "$scheme-$i.csv" transfer_s 6) $(value "$scheme-$i.csv" ttst_s 6) $(value "$scheme-$i.csv" transfer_s 5)" \
            "$(value "plain-$scheme-$i.csv" transfer_s 5)" >>"$scheme.values"
    done
    bytes=$(awk -F, 'NR == 2 { print $21 + $22 }' "sim-$scheme/requests.csv")
    fetched=$(awk -F, '$1 == 0 && $2 == 2 { print $8 }' "sim-$scheme/tokens.csv")
    sort -n "$scheme.values" | awk -v scheme=$scheme -v fabric="$fabric" -v rate=$rate -v bytes="$bytes" -v fetched="$fetched" '
        { emu[NR] = $1; share[NR] = $1 / $2; sim = $3; plain = $4 }
        END {
            n = NR; m = n % 2 ? emu[(n + 1) / 2] : (emu[n / 2] + emu[n / 2 + 1]) / 2
            only = (bytes + fetched) * 8e-9 / rate
            printf "predict | %s | %s | %g | %.0f%% | %.4f | %.1f%% | %.4f | %+.1f%% | %+.1f%% | %+.1f%% |\n", scheme, fabric, 1000 * rate,
                100 * share[int((n + 1) / 2)], m, 100 * (emu[n] - emu[1]) / m, sim, 100 * (sim - m) / m, 100 * (plain - m) / m,
                100 * (only - m) / m
        }'
done
