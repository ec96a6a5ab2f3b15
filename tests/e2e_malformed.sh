#!/bin/bash
# Malformed files, one folder of tests/data/malformed per kind: the program refuses each with exit status 2, nothing on standard
# output, and exactly the line that NAME.expected holds (without "smartgen: "). A kind's folder may be absent; a bad file without
# its .expected, and the reverse, is an error.
#
# importance/ holds synthetic profiles of one group and one block, under 1 KB each (docs/selection.md has the format). Damage to
# bytes: magic, version, short, cut, checksum. The rest have a right checksum: header (no JSON), missing-field (H), sizes and
# too-many-blocks (M of the header), empty-group, nan, dense-layer (a number in layer 1), left-over (bytes behind the last group),
# model (36 layers).
. "$top_srcdir/tests/e2e/lib.sh"

folder=$top_srcdir/tests/data/malformed

# arguments KIND FILE: the program's arguments, in $args.
arguments() {
    local key
    case $1 in
    scenario) args=(plan "$2") ;;
    config) args=(plan --set "model=./$2") ;;
    hardware)
        case $2 in
        gpu-*) key=prefill.gpu ;;
        nic-*) key=network.nic ;;
        host-*) key=host ;;
        instance-*) key=prefill.instance ;;
        *) fail "hardware/$2: the name begins with none of gpu-, nic-, host-, instance-" ;;
        esac
        args=(plan --set "$key=./$2")
        ;;
    traces) args=(plan --set workload.kind=trace --set "workload.format=${2%%-*}" --set "workload.file=$2") ;;
    importance) args=(plan --set "proactive.importance=./$2") ;;
    esac
}

check() {
    local kind=$1 file=$2 expected=${2%.*}.expected
    [ -f "$expected" ] || fail "$kind/$file: there is no $expected"
    arguments "$kind" "$file"
    must "$kind/$file" 2 "${args[@]}"
    [ ! -s "$work/stdout" ] || fail "$kind/$file: prints on standard output" "$work/stdout"
    sed 's/^/smartgen: /' "$expected" >"$work/expected"
    same "$kind/$file" "$work/expected" "$work/stderr"
}

total=0
for kind in scenario config hardware traces importance; do
    [ -d "$folder/$kind" ] || continue
    cd "$folder/$kind"
    n=0
    for file in *; do
        if [ "${file##*.}" = expected ]; then
            others=("${file%.expected}".*)
            [ ${#others[@]} -ge 2 ] || fail "$kind/$file: there is no bad file beside it"
            continue
        fi
        check "$kind" "$file"
        n=$((n + 1))
    done
    [ "$n" -gt 0 ] || fail "$kind: the folder is empty"
    ok "$kind: $n malformed files, each refused with its own line"
    total=$((total + n))
done
cd "$work"
[ "$total" -gt 0 ] || fail "no malformed files in $folder"
echo "$total malformed files"
finish
