#!/bin/bash
# tally.sh FOLDER: counts the results that make check left in FOLDER. First line: passed failed skipped; then one line for each
# failure and each skip: "fail NAME" or "skip NAME: REASON". A cmocka program counts with its cases, a script as one.
set -euo pipefail

cd "$1"
passed=0 failed=0 skipped=0
lines=()

# sum_of LOG WORD: the numbers cmocka printed behind [  WORD  ]
sum_of() {
    sed -n "s/^\[ *$2 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$1" | awk '{ n += $1 } END { print n + 0 }'
}

while IFS= read -r trs; do
    log=${trs%.trs}.log
    name=${trs%.trs}
    name=${name#./}
    result=$(sed -n 's/^:test-result: *//p' "$trs" | head -n 1)
    p=$(sum_of "$log" PASSED) f=$(sum_of "$log" FAILED) s=$(sum_of "$log" SKIPPED)
    case $result in
    PASS)
        [ $((p + f + s)) -gt 0 ] || p=1
        ;;
    SKIP)
        s=$((s > 0 ? s : 1))
        reason=$(sed -n 's/^skip: *//p' "$log" | head -n 1)
        lines+=("skip $name: ${reason:-no reason given}")
        ;;
    *)
        f=$((f > 0 ? f : 1))
        lines+=("fail $name")
        ;;
    esac
    if [ "$result" != SKIP ] && [ "$s" -gt 0 ]; then
        while IFS= read -r case_name; do
            lines+=("skip $name: $case_name")
        done < <(sed -n 's/^\[ *SKIPPED *\] \([^0-9].*\)/\1/p' "$log" | sort -u)
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done < <(find . -name '*.trs' | LC_ALL=C sort)

echo "$passed $failed $skipped"
[ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}"
