#!/bin/bash
# Output that cannot be written. A place that takes no file is bad input, found before the work: exit status 2. A disk or a standard
# output that is full is a failed run: exit status 1. Either way one line that says where and why, and nothing half-written.
. "$top_srcdir/tests/e2e/lib.sh"

small=$top_srcdir/tests/e2e/small.yaml
profile=$work/profile.kvit
must "a profile" 0 profile "$small" -o "$profile" --requests 1 --steps 2
other=$work/other.kvit
must "another profile" 0 profile "$small" --set seed=77 -o "$other" --requests 1 --steps 2
must "a run" 0 sim "$small" --engine native -o "$work/run"

# ---- Standard output ----
full=/dev/full
if [ ! -c "$full" ]; then
    full=$work/full
    mknod -m 666 "$full" c 1 7 2>/dev/null || full=
fi

# unsaid NAME ARGUMENT...: standard output takes nothing.
unsaid() {
    local name=$1
    shift
    rc=0
    "$SMARTGEN" "$@" >"$full" 2>"$work/stderr" || rc=$?
    sed -i '/ASan is ignoring requested/d; /^False positive error reports may follow/d; /^For details see .*sanitizers/d' "$work/stderr"
    [ "$rc" -eq 1 ] || fail "$name on a full standard output: exit status $rc, expected 1" "$work/stderr"
    one_line "$name on a full standard output"
    [ "$(cat "$work/stderr")" = "smartgen: standard output cannot be written: No space left on device" ] ||
        fail "$name on a full standard output: not the reason" "$work/stderr"
    ok "$name on a full standard output: exit 1"
}

if [ -n "$full" ] && ! echo 2>/dev/null >"$full"; then
    unsaid plan plan "$small"
    unsaid "plan --json" plan "$small" --json
    unsaid sim sim "$small" --engine native
    unsaid replay replay "$work/run"
    unsaid summarize summarize "$work/run"
    unsaid list list keys
    unsaid --help --help
    unsaid --version --version
    unsaid "sim --help" sim --help
    unsaid help help sim
    unsaid man man
    unsaid completion completion bash
    unsaid doctor doctor
    unsaid "doctor --json" doctor --json
    unsaid "profile --inspect" profile --inspect "$profile"
    unsaid "profile --heatmap" profile --heatmap "$profile"
    ! has_emu || unsaid emu emu "$small"
else
    skip_part "no /dev/full, and no permission to make one: a full standard output cannot be tested"
fi

# ---- A full disk ----
mkdir "$work/disk"
inside='mount -t tmpfs -o size=$1 smartgen "$2" || exit 99
cd "$2"
left=$3
shift 3
rc=0
"$@" || rc=$?
find . -mindepth 1 -type f >"$left"
exit $rc'

# fills NAME SIZE ARGUMENT...: writes to "o" in the root of a disk of that size; nothing may stay behind.
fills() {
    local name=$1 size=$2
    shift 2
    rc=0
    unshare -m bash -c "$inside" inside "$size" "$work/disk" "$work/left" "$SMARTGEN" "$@" >"$work/stdout" 2>"$work/stderr" || rc=$?
    sed -i '/ASan is ignoring requested/d; /^False positive error reports may follow/d; /^For details see .*sanitizers/d' "$work/stderr"
    [ "$rc" -eq 1 ] || fail "$name on a full disk: exit status $rc, expected 1" "$work/stdout" "$work/stderr"
    one_line "$name on a full disk"
    says "$name on a full disk" "No space left on device"
    # The name that was given, and not one that only stands for it while it is written.
    grep -qE '^smartgen: o(/[a-z.0-9]+)?: ' "$work/stderr" || fail "$name on a full disk: not the name of the output" "$work/stderr"
    ! grep -q 'o\.' "$work/stderr" || fail "$name on a full disk: a temporary name" "$work/stderr"
    [ ! -s "$work/left" ] || fail "$name on a full disk: left behind: $(cat "$work/left")"
    ok "$name on a full disk: $(cut -c 1-150 "$work/stderr" | sed "s|$work/||g")"
}

if [ "$(id -u)" -eq 0 ] && unshare -m bash -c "$inside" inside 16k "$work/disk" "$work/left" true 2>/dev/null; then
    fills sim 16k sim "$small" --engine native -o o
    fills "sim without logs" 8k sim "$small" --engine native --set records.events=false -o o
    fills "sim --timeline" 16k sim "$small" --engine native --set records.events=false --timeline -o o
    fills profile 8k profile "$small" --requests 1 --steps 2 -o o
    fills "profile --record" 4k profile "$small" --record o
    fills "profile --merge" 8k profile --merge "$profile" "$other" -o o
    fills "profile --heatmap" 16k profile --heatmap "$profile" -o o
    must "a longer run" 0 sim "$small" --engine native --set workload.requests=30 -q -o "$work/longer"
    fills compare 8k compare "$work/longer" "$work/longer" -q -o o
    fills figures 4k figures fig02 -o o
    fills "an image" 14k figures fig02 -o o
    if has_emu; then
        fills emu 16k emu "$small" -o o
        fills "emu measure" 4k emu measure --seconds 0.02 --samples 5 -o o
        fills "emu without logs" 8k emu "$small" --set records.events=false -o o
        fills "emu --timeline" 16k emu "$small" --set records.events=false --timeline -o o
    fi
else
    skip_part "no root, or no mounts of its own: a full disk cannot be tested"
fi

# ---- Places that take no file ----
echo data >"$work/file"
mkdir "$work/folder"

# nowhere NAME ARGUMENT...: refused, and said of $work/file or $work/folder.
nowhere() {
    local name=$1
    shift
    must "$name" 2 "$@"
    one_line "$name"
    says "$name" "$work/f"
    [ ! -s "$work/stdout" ] || fail "$name: prints on standard output" "$work/stdout"
    [ "$(cat "$work/file")" = data ] || fail "$name: the file in the way changed"
    leaves "$name" "$work/folder"
    ok "$name: $(sed "s|$work/||g" "$work/stderr")"
}

nowhere "sim below a file" sim "$small" --engine native -o "$work/file/out"
nowhere "profile below a file" profile "$small" -o "$work/file/out"
nowhere "profile over a folder" profile "$small" -o "$work/folder"
nowhere "profile in a folder that is not there" profile "$small" -o "$work/folder/none/out"
nowhere "profile --record below a file" profile "$small" --record "$work/file/out"
nowhere "profile --merge below a file" profile --merge "$profile" "$other" -o "$work/file/out"
nowhere "profile --heatmap below a file" profile --heatmap "$profile" -o "$work/file/out"
nowhere "figures below a file" figures fig11 -o "$work/file/out"
nowhere "figures over a file" figures fig11 -o "$work/file"
! has_emu || nowhere "emu below a file" emu "$small" -o "$work/file/out"

# ---- Files that are something else are not written over ----
cp "$small" "$work/foreign"
must "profile --record" 0 profile "$small" --record "$work/record.kvsr" --requests 1 --steps 2

# kept FILE KIND ARGUMENT...: refused before any work, and the file stays.
kept() {
    local file=$1 kind=$2
    shift 2
    cp "$file" "$work/before"
    must "over another file" 2 "$@"
    one_line "over another file"
    says "over another file" "$file: exists and is no $kind; choose another name"
    same "over another file" "$work/before" "$file"
    ok "refused: $(sed "s|$work/||g" "$work/stderr")"
}
kept "$work/foreign" "importance file" profile "$work/foreign" -o "$work/foreign"
kept "$work/foreign" "recording of selections" profile "$work/foreign" --record "$work/foreign"
kept "$work/foreign" "importance file" profile --merge "$profile" "$other" -o "$work/foreign"
kept "$work/foreign" "heat map" profile --heatmap "$profile" -o "$work/foreign"
cp "$small" "$work/trace.csv"
kept "$work/trace.csv" "heat map" profile --heatmap "$profile" -o "$work/trace.csv"
kept "$work/trace.csv" "table of a comparison" compare "$work/run" "$work/run" -o "$work/trace.csv"
kept "$profile" "recording of selections" profile "$small" --record "$profile"
kept "$profile" "heat map" profile --heatmap "$profile" -o "$profile"
kept "$work/record.kvsr" "importance file" profile "$small" -o "$work/record.kvsr"
mkdir "$work/drawn"
echo mine >"$work/drawn/fig02.csv"
must "figures over data of somebody" 2 figures fig02 -o "$work/drawn"
one_line "figures over data of somebody"
says "figures over data of somebody" "$work/drawn/fig02.csv: exists and is none of this command's"
leaves "figures over data of somebody" "$work/drawn" fig02.csv
for name in fig02.svg fig02-narrow.svg fig02.txt report.html validation.csv validation.txt; do
    rm -rf "$work/drawn"
    mkdir "$work/drawn"
    echo mine >"$work/drawn/$name"
    must "figures over somebody's $name" 2 figures fig02 -o "$work/drawn"
    one_line "figures over somebody's $name"
    says "figures over somebody's $name" "$work/drawn/$name: exists and is none of this command's"
    leaves "figures over somebody's $name" "$work/drawn" $name
    [ "$(cat "$work/drawn/$name")" = mine ] || fail "figures over somebody's $name: written over"
done
must "figures into a record folder" 2 figures fig02 -o "$work/run"
one_line "figures into a record folder"
says "figures into a record folder" "$work/run: a record folder"
must "a profile and its copy" 2 profile --merge "$profile" "$profile" -o "$work/merged.kvit"
one_line "a profile and its copy"
says "a profile and its copy" "they would count twice"
ok "figures leave foreign data and record folders alone, a profile is merged with another one only"
: >"$work/empty"
must "over an empty file" 0 profile "$small" -o "$work/empty" --requests 1 --steps 2
must "over an earlier importance file" 0 profile "$small" -o "$work/empty" --requests 1 --steps 2
must "over an earlier recording" 0 profile "$small" --record "$work/record.kvsr" --requests 1 --steps 2
must "a heat map" 0 profile --heatmap "$profile" -o "$work/map"
must "over an earlier heat map" 0 profile --heatmap "$profile" -o "$work/map"
ok "an earlier output of the same kind and an empty file are written over"

# ---- What was synthetic is said ----
must "a profile to check" 0 profile --set model=llama-3.1-8b --set blocks_per_layer=50 --requests 1 --steps 2 -q -o "$work/check.kvit"
smg profile --check "$work/check.kvit" # of two steps, so that facts may fail
grep -qx "synthetic: importance" "$work/stdout" || fail "profile --check says nothing of synthetic" "$work/stdout"
must "a run with a timeline" 0 sim "$small" --engine native --timeline -q -o "$work/labelled"
tail -n 1 "$work/labelled/timeline.json" | grep -qF '"otherData":{"synthetic":"importance selection workload"}' || fail "timeline.json" "$work/labelled/timeline.json"
for file in run.json summary.json; do
    [ "$(json_value "$work/labelled/$file" selection)" = true ] || fail "$file says nothing of synthetic" "$work/labelled/$file"
done
must "summarize" 0 summarize "$work/labelled"
grep -qx "synthetic: importance selection workload" "$work/stdout" || fail "summarize says nothing of synthetic" "$work/stdout"
ok "synthetic inputs are named by profile --check, summarize, summary.json, timeline.json"

# ---- Places that another run is writing to ----
if command -v flock >/dev/null; then
    mkdir "$work/figures"
    exec 8>"$work/held.kvit.new" 9<"$work/figures"
    flock -n 8 && flock -n 9 || fail "no lock"
    must "profile where another writes" 2 profile "$small" -o "$work/held.kvit" --requests 1 --steps 2
    one_line "profile where another writes"
    says "profile where another writes" "$work/held.kvit: another run is writing there"
    [ -e "$work/held.kvit.new" ] || fail "profile where another writes: its file is gone"
    must "figures where others are drawn" 2 figures fig02 -o "$work/figures"
    one_line "figures where others are drawn"
    says "figures where others are drawn" "$work/figures: another run is writing there"
    exec 8>&- 9<&-
    # What a killed run left is taken.
    must "profile where one was killed" 0 profile "$small" -o "$work/held.kvit" --requests 1 --steps 2
    [ ! -e "$work/held.kvit.new" ] && [ -s "$work/held.kvit" ] || fail "profile where one was killed"
    must "profile of a scenario that is none" 2 profile "$work/none.yaml" -o "$work/unmade.kvit"
    [ ! -e "$work/unmade.kvit.new" ] || fail "profile of a scenario that is none leaves a file"
    ok "two runs into one file or one folder: the second is refused before its work"
else
    skip_part "no flock: two runs into one file cannot be tested"
fi

# ---- What was written is said ----
must "profile --heatmap -o" 0 profile --heatmap "$profile" -o "$work/map.csv"
grep -q "^$work/map.csv: 5 groups" "$work/stdout" || fail "profile --heatmap -o does not say what it wrote" "$work/stdout"
must "profile --heatmap -o -q" 0 profile --heatmap "$profile" -o "$work/map.csv" -q
[ ! -s "$work/stdout" ] || fail "profile --heatmap -o -q prints" "$work/stdout"
ok "profile --heatmap -o says what it wrote, and nothing with -q"
must "sim --timeline without a folder" 0 sim "$small" --engine native --timeline -q
one_line "sim --timeline without a folder"
says "sim --timeline without a folder" "--timeline: has no effect without -o DIR"
ok "--timeline without -o is told"
finish
