#!/bin/bash
# Installs what is missing, builds in build/, and runs the main job: three schemes simulated, the same three emulated on a small
# scenario (with timelines, which the report draws), a replay of every run, and the figures, the validation table and the report in out/.
set -euo pipefail

cd "$(dirname "$0")"
. scripts/setup.sh

BUILD=build
OUT=out
SCHEMES="full partial smartgen"

# ---- The main job. smartgen is the program just built ----
smartgen() {
    "$SMG_TOP/$BUILD/smartgen" "$@"
}

main_job() {
    local scheme
    for scheme in $SCHEMES; do
        smg_loud "simulation, scheme $scheme" \
            smartgen sim experiments/default.yaml --set scheme="$scheme" -o "$OUT/sim-$scheme"
    done
    for scheme in $SCHEMES; do
        smg_loud "small scenario on the transfer engine, scheme $scheme" \
            smartgen emu experiments/emu-small.yaml --set scheme="$scheme" --timeline -o "$OUT/emu-$scheme"
        smg_loud "small scenario simulated, scheme $scheme" \
            smartgen sim experiments/emu-small.yaml --set scheme="$scheme" --timeline -o "$OUT/emu-sim-$scheme"
    done
    for scheme in $SCHEMES; do
        smg_loud "replay, scheme $scheme" sh -c "for d in sim emu emu-sim; do '$SMG_TOP/$BUILD/smartgen' replay '$OUT'/\$d-$scheme; done"
    done
    smg_loud "figures, validation table and report" smartgen figures -j "$SMG_JOBS" -o "$OUT"
    echo "report: $OUT/report.html"
}

start=$EPOCHREALTIME
smg_packages $SMG_BUILD_PACKAGES
smg_quiet "$BUILD-logs/autoreconf.log" "autoreconf" smg_autoreconf
smg_quiet "$BUILD-logs/configure.log" "configure" smg_configure "$BUILD"
sed -n '/^smartgen [0-9]/,$p' "$BUILD-logs/configure.log"
smg_quiet "$BUILD-logs/make.log" "make" smg_make "$BUILD"
main_job
echo "total: $(smg_seconds_since "$start")"
