#!/bin/bash
# rdma-compare.sh [PAIRS]: smartgen emu bench beside perftest, between two soft-RoCE devices in a virtual machine (scripts/rdma-vm.sh).
#
# perftest writes to one place over and over, and so does the bench here: what the caches keep is the same.
# Both run in turn in one machine, PAIRS times (default 5); the table has medians, and the median of the ratios of the pairs (what a pair
# has in common is the state of the host then), with the smallest and the largest, beside what is aimed at. perftest is downloaded as
# packages and unpacked, not installed. Figures are of an emulated processor that shares its host: only ratios mean something.
# SMARTGEN is the program (default: smartgen in PATH).
set -euo pipefail

pairs=${1:-5}
top=$(cd "$(dirname "$0")/.." && pwd)
program=$(command -v "${SMARTGEN:-smartgen}") || { echo "set SMARTGEN to the program" >&2; exit 2; }
cache=${SMG_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/smartgen}
kit=$cache/perftest-1
lib=$kit/usr/lib/x86_64-linux-gnu
work=$(mktemp -d "${TMPDIR:-/tmp}/rdma-compare-XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ ! -x "$kit/usr/bin/ib_write_bw" ]; then
    mkdir -p "$work/debs" "$work/kit"
    (cd "$work/debs" && apt-get download -q perftest librdmacm1 libibumad3 libpci3) >"$work/log" 2>&1 ||
        { echo "skip: apt-get cannot download perftest: $(tail -n 1 "$work/log")"; exit 77; }
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/kit"; done
    rm -rf "$kit"
    mkdir -p "$cache"
    mv "$work/kit" "$kit"
fi

cat >"$work/script" <<X
pairs=$pairs
X
cat >>"$work/script" <<'X'
export SMARTGEN_DATA=/nowhere

# perftest PROGRAM ARGUMENT...: the line of numbers. The client waits until the server listens (port 18515).
perftest() {
    "$@" -d rxb -x 1 -F >server 2>&1 &
    for i in $(seq 200); do
        grep -q ':4853 ' /proc/net/tcp /proc/net/tcp6 && break
        sleep 0.05
    done
    "$@" -d rxa -x 1 -F 10.0.0.2 >client 2>&1 || { cat client; exit 3; }
    wait
    grep -E '^ *[0-9]+ +[0-9]+ +[0-9.]+ ' client | tail -n 1
}

bench() {
    smartgen emu bench --fabric verbs --device rxa,rxb --timeout 60 --json "$@" >json || exit 4
}

# The N-th value of a field.
value() {
    sed -n "s/^ *\"$1\": *\([0-9.e+-]*\),*\$/\1/p" json | sed -n "${2}p"
}

for pair in $(seq $pairs); do
    # size, WRITEs, depth, batch
    while read -r size n depth batch; do
        echo "theirs write $size $(perftest ib_write_bw -s $size -n $n -t $depth -Q $batch | awk '{ print $4 * 1048576 }')"
        bench --block $size --batch $batch --queues 1 --entries 1 --depth $depth --places 1 --samples 5 --seconds 3
        echo "ours write $size $(value bytes_per_s 1)"
        if [ $size -eq 65536 ]; then
            echo "theirs masked $size $(value alone_s 1)"
            echo "ours masked $size $(value masked_s 1)"
        fi
    done <<Y
4096 20000 64 8
28672 5000 32 8
65536 3000 16 4
1048576 200 8 1
Y
    # entries of 512 bytes, bytes of the request, of the reply
    while read -r entries request reply; do
        there=$(perftest ib_send_lat -s $request -n 1000 | awk '{ print $5 }')
        back=$(perftest ib_send_lat -s $reply -n 1000 | awk '{ print $5 }')
        echo "theirs trip $entries $(echo $there $back | awk '{ print $1 + $2 }')"
        bench --block 4096 --batch 1 --queues 1 --entries $entries --samples 1000 --seconds 0.01
        echo "ours trip $entries $(sed -n '/"on_demand"/,$p' json | sed -n 's/^ *"p50_us": *\([0-9.e+-]*\),*$/\1/p')"
    done <<Y
1 20 512
16 80 8192
128 528 65536
Y
done
X
rc=0
export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
SMG_VM_LIMIT=${SMG_VM_LIMIT:-1800} "$top/scripts/rdma-vm.sh" -p "$program" -p "$kit/usr/bin/ib_write_bw" -p "$kit/usr/bin/ib_send_lat" \
    "$work/script" | tr -d '\r' | tee "$work/log" || rc=$?
[ "$rc" -eq 0 ] || exit "$rc"

# median: of the numbers in column N of standard input
median() {
    awk -v n="$1" '{ print $n }' | sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'
}

# pairs KIND SIZE: ours, theirs, ratio, one pair a line
pairs() {
    awk -v kind="$1" -v size="$2" '$2 == kind && $3 == size { x[$1, ++n[$1]] = $4 }
        END { for (i = 1; i <= n["ours"]; i++) print x["ours", i], x["theirs", i], x["ours", i] / x["theirs", i] }' "$work/log"
}

# row NAME KIND SIZE FACTOR UNIT AIM
row() {
    pairs "$2" "$3" >"$work/pairs"
    awk -v name="$1" -v ours="$(median 1 <"$work/pairs")" -v theirs="$(median 2 <"$work/pairs")" -v ratio="$(median 3 <"$work/pairs")" \
        -v low="$(cut -d' ' -f3 "$work/pairs" | sort -g | head -n 1)" -v high="$(cut -d' ' -f3 "$work/pairs" | sort -g | tail -n 1)" \
        -v factor="$4" -v unit="$5" -v aim="$6" \
        'BEGIN { printf "%-34s %10.4g %10.4g %-6s %6.3f  %.2f to %.2f  %s\n", name, ours * factor, theirs * factor, unit, ratio, low, high, aim }'
}

echo
printf '%-34s %10s %10s %-6s %6s  %12s  %s\n' "medians of $pairs" smartgen perftest unit ratio "of a pair" "aimed at"
row "WRITE of 64 KiB" write 65536 1e-6 MB/s ">= 0.9"
row "WRITE of 1 MiB" write 1048576 1e-6 MB/s ">= 0.9"
row "WRITEs of 4 KiB" write 4096 $(awk 'BEGIN { print 1 / 4096 }') 1/s ">= 0.85"
row "WRITEs of 28 KiB" write 28672 $(awk 'BEGIN { print 1 / 28672 }') 1/s ">= 0.85"
row "on-demand, 1 entry; ping-pong" trip 1 1 us "<= 1.3"
row "on-demand, 16 entries; ping-pong" trip 16 1 us "<= 1.3"
row "on-demand, 128 entries; ping-pong" trip 128 1 us "<= 1.3"
row "64 KiB and mask; 64 KiB alone" masked 65536 1e6 us "<= 1.15"
echo "(the last row is smartgen against itself)"
