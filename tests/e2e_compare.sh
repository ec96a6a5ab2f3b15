#!/bin/bash
# smartgen compare, emu measure and scripts/predict.sh: a run against itself, the two engines against each other, altered and unlike folders;
# files of a measurement are taken by plan, sim and emu. No check depends on how long something takes.
. "$top_srcdir/tests/e2e/lib.sh"

small=$top_srcdir/tests/e2e/small.yaml
must "sim" 0 sim "$small" --engine native --quiet -o "$work/a"

must "a run against itself" 0 compare "$work/a" "$work/a" --tolerance 0
grep -qE '^transfer_s +3 +0.000 +0.000 ' "$work/stdout" || fail "a run against itself: no line of errors 0" "$work/stdout"
grep -qE '^b: .*; synthetic: importance, selection, workload$' "$work/stdout" || fail "a run against itself: not labelled synthetic" "$work/stdout"
must "as JSON" 0 compare "$work/a" "$work/a" --json
[ "$(json_value "$work/stdout" largest_error)" = 0.0 ] || fail "JSON: the largest error is not 0" "$work/stdout"
grep -q '"b": "importance, selection, workload"' "$work/stdout" || fail "JSON: not labelled synthetic" "$work/stdout"
must "as CSV" 0 compare "$work/a" "$work/a" --quiet -o "$work/table.csv"
[ ! -s "$work/stdout" ] || fail "--quiet prints" "$work/stdout"
# 3 requests: 8 quantities and 3 gaps each, behind a header.
[ "$(wc -l <"$work/table.csv")" -eq 34 ] || fail "CSV: $(wc -l <"$work/table.csv") lines, expected 34" "$work/table.csv"
head -n 1 "$work/table.csv" | grep -qx 'request,token,quantity,unit,a,b,error_percent,synthetic_a,synthetic_b' || fail "CSV: header" "$work/table.csv"
awk -F, 'NR > 1 && $9 != "importance+selection+workload" { exit 1 }' "$work/table.csv" || fail "CSV: not labelled synthetic" "$work/table.csv"
awk -F, 'NR > 1 && $7 != 0 { exit 1 }' "$work/table.csv" || fail "CSV: an error that is not 0" "$work/table.csv"
must "CSV again" 0 compare "$work/a" "$work/a" --quiet -o "$work/table.csv"
ok "a run against itself: no error, as text, JSON and CSV"

if [ "$engines" != native ]; then
    must "sim with SimGrid" 0 sim "$small" --engine simgrid --quiet -o "$work/simgrid"
    # 9 digits in the files; the engines agree to 1e-9.
    must "SimGrid and native" 0 compare "$work/simgrid" "$work/a" --tolerance 0.0001
    grep -q "they differ in: engine" "$work/stdout" || fail "SimGrid and native: what differs" "$work/stdout"
    ok "SimGrid against native within 0.0001 %"
else
    skip_part "no SimGrid: the engines are not compared"
fi

cp -r "$work/a" "$work/altered"
awk -F, -v OFS=, 'NR == 2 { $19 = $19 * 1.01 } { print }' "$work/a/requests.csv" >"$work/altered/requests.csv"
must "an altered folder" 1 compare "$work/a" "$work/altered" --tolerance 0.5 --quiet
one_line "an altered folder"
says "an altered folder" "above --tolerance 0.5"
ok "an altered folder is found: $(cat "$work/stderr")"
must "an altered folder without a tolerance" 0 compare "$work/a" "$work/altered" --quiet

must "sim with another seed" 0 sim "$small" --engine native --set seed=6 --quiet -o "$work/seed"
refused "another seed" "cannot be compared: seed: 5 and 6" compare "$work/a" "$work/seed"
must "sim of another scheme" 0 sim "$small" --engine native --set scheme=full --quiet -o "$work/full"
refused "another scheme" "cannot be compared: scheme: smartgen and full" compare "$work/a" "$work/full"
must "sim of fewer requests" 0 sim "$small" --engine native --set workload.requests=2 --quiet -o "$work/two"
refused "other requests" "number of requests: 3 and 2" compare "$work/a" "$work/two"
refused "no folder" "none/run.json" compare "$work/a" "$work/none"
mkdir "$work/half"
cp "$work/a/run.json" "$work/half/"
refused "half a folder" "half/requests.csv" compare "$work/a" "$work/half"
refused "one folder" "missing operand" compare "$work/a"
refused "a tolerance below 0" "--tolerance" compare "$work/a" "$work/a" --tolerance -1
echo "precious" >"$work/notes.txt"
refused "a file of something else" "is no table of a comparison" compare "$work/a" "$work/a" -o "$work/notes.txt"
cp "$work/a/requests.csv" "$work/kept.csv"
refused "a run's own records" "is no table of a comparison" compare "$work/a" "$work/a" -o "$work/a/requests.csv"
cmp -s "$work/kept.csv" "$work/a/requests.csv" || fail "a run's own records are written over"
refused "a scenario key" "--set" emu measure --set scheme=full
refused "three sizes" "--block" emu measure --block 8K,64K,1M
refused "an option of the bench" "--depth" emu measure --depth 3
refused "a provider without a name" "expected PROVIDER" emu measure --device @127.0.0.1

if ! has_emu; then
    skip_part "no libfabric with tcp: nothing is measured"
    finish
    exit 0
fi

must "emu measure" 0 emu measure --seconds 0.02 --samples 5 --entry-bytes 256 -o "$work/here"
leaves "emu measure" "$work/here" host.json$'\n'nic.json
for key in rate_Bps latency_s post_cost_s message_bytes completion_s send_early rpc_overhead_s max_message_bytes; do
    grep -q "\"$key\"" "$work/here/nic.json" || fail "nic.json has no $key" "$work/here/nic.json"
done
for key in gather_Bps_per_vcpu gather_exponent copy_Bps timer_late_s; do
    grep -q "\"$key\"" "$work/here/host.json" || fail "host.json has no $key" "$work/here/host.json"
done
grep -q 'fabric ofi' "$work/here/nic.json" || fail "nic.json does not say what was measured" "$work/here/nic.json"
! grep -qE '20[0-9][0-9]-[0-9][0-9]' "$work/here/nic.json" || fail "nic.json has a date" "$work/here/nic.json"
files=(--set "network.nic=$work/here/nic.json" --set "host=$work/here/host.json")
must "plan with measured files" 0 plan "$small" "${files[@]}"
must "sim with measured files" 0 sim "$small" "${files[@]}" --engine native --quiet -o "$work/sim"
must "emu with measured files" 0 emu "$small" "${files[@]}" --quiet -o "$work/emu"
must "sim and emu" 0 compare "$work/sim" "$work/emu" -o "$work/both.csv"
# Times are the machine's; bytes that no decision about time moves are the same.
awk -F, '($3 == "metadata_bytes" || $3 == "proactive_bytes") && $7 != 0 { exit 1 }' "$work/both.csv" || fail "bytes of sim and emu" "$work/both.csv"
ok "files of a measurement are taken by plan, sim and emu; compare lines sim and emu up"
must "emu measure, JSON" 0 emu measure --seconds 0.02 --samples 5 --device tcp@127.0.0.2,tcp@127.0.0.3 --json
[ "$(grep -c '"key":' "$work/stdout")" -eq 11 ] || fail "JSON: not 11 values" "$work/stdout"
grep -q 'tcp@127.0.0.2,tcp@127.0.0.3' "$work/stdout" || fail "JSON: the device is not named" "$work/stdout"
must "emu between two addresses" 0 emu "$small" --device tcp@127.0.0.2,tcp@127.0.0.3 --quiet
mkdir "$work/mine"
echo "precious" >"$work/mine/notes.txt"
refused "a folder of something else" "not a folder of such files" emu measure -o "$work/mine"
echo '{"rate_Bps": {"value": 1e9, "unit": "B/s", "source": "data sheet"}}' >"$work/mine/nic.json"
cp "$work/mine/nic.json" "$work/kept.json"
refused "a NIC file of one's own" "mine/nic.json: exists and is no measurement" emu measure -o "$work/mine"
cmp -s "$work/kept.json" "$work/mine/nic.json" || fail "a NIC file of one's own is written over"
must "emu measure over an earlier one" 0 emu measure --seconds 0.02 --samples 5 --quiet -o "$work/here"
refused "an address that is not here" "requested address" emu measure --device tcp@192.0.2.1
ok "two addresses of this host; folders of others are left alone"

(cd "$work" && mkdir predict && cd predict && SMG_PREDICT_MEASURE="--seconds 0.02 --samples 5" \
    sh "$top_srcdir/scripts/predict.sh" -n 2 -s "full smartgen" -x "workload.prompt_tokens=256 network.chunk_kib=32" ofi tcp 1) >"$work/stdout" 2>"$work/stderr" ||
    fail "scripts/predict.sh" "$work/stdout" "$work/stderr"
[ "$(grep -cE '^predict \| (full|smartgen) \| ofi \| 1000 \|( [-+0-9.%]+ \|){7}$' "$work/stdout")" -eq 2 ] ||
    fail "scripts/predict.sh: not two lines of the table" "$work/stdout"
ok "scripts/predict.sh: measured, simulated, run, compared"
finish
