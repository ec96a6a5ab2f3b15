#!/bin/bash
# Builds in every supported way, runs all tests, and ends with one line: N passed, N failed, N skipped.
# Exit status 0: nothing failed. With CI set, a skip that tests/expected-skips.txt does not name is a failure.
set -uo pipefail

cd "$(dirname "$0")" || exit 1
. scripts/setup.sh

LOGS=build-logs
passed=0 failed=0 skipped=0
notes=()

# build NAME FOLDER ARGUMENT...: configures with warnings as errors and compiles everything, tests included; runs nothing. Only distcheck
# makes the static library.
build() {
    local name=$1 folder=$2
    shift 2
    if smg_quiet "$LOGS/$folder.log" "$name" build_all "$folder" "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        notes+=("fail build: $name")
        return 1
    fi
}

build_all() {
    local folder=$1
    shift
    smg_configure "$folder" --enable-werror --disable-static "$@" && smg_make "$folder" all && smg_make "$folder" check TESTS=
}

# check NAME FOLDER TARGET: make check, or another target that runs tests, in a folder that is built; adds its counts.
check() {
    local name=$1 folder=$2 target=$3 rc=0
    find "$folder" -name '*.trs' -delete 2>/dev/null
    smg_quiet "$LOGS/$folder-check.log" "$name" smg_make "$folder" -k "$target" || rc=$?
    count "$name" "$folder" "$rc"
}

# distcheck FOLDER: make distcheck in a configured folder: every test runs once more as somebody who unpacks the tarball would run it,
# then install, uninstall, and nothing left. Adds the counts of its tests.
distcheck() {
    local folder=$1 results="$PWD/$1/distcheck" rc=0
    rm -rf "$results"
    mkdir "$results"
    SMG_KEEP_RESULTS=$results smg_quiet "$LOGS/distcheck.log" "make distcheck, all tests" smg_make "$folder" distcheck || rc=$?
    if [ "$rc" -ne 0 ] && [ -z "$(ls -A "$results")" ]; then
        # It stopped before installcheck and left its folder behind.
        cp -r "$folder"/smartgen-*/_build/sub/tests "$results/" 2>/dev/null
    fi
    count "make distcheck" "$folder/distcheck" "$rc"
    chmod -R u+w "$folder"/smartgen-*/ 2>/dev/null
    rm -rf "$folder"/smartgen-*/
}

# count NAME FOLDER STATUS: adds the results that lie in the folder; STATUS is that of the make that left them.
count() {
    local name=$1 folder=$2 rc=$3 counts line p f s
    counts=$(scripts/tally.sh "$folder")
    read -r p f s <<<"$(head -n 1 <<<"$counts")"
    while IFS= read -r line; do
        case $line in
        fail*)
            notes+=("$line ($folder)")
            show_log "$folder/$(cut -d' ' -f2 <<<"$line").log"
            ;;
        skip*)
            notes+=("$line ($folder)")
            expected_skip "$line" || f=$((f + 1))
            ;;
        esac
    done < <(tail -n +2 <<<"$counts")
    # make failed, yet no test did: something did not build or start.
    if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
        notes+=("fail $name: make ended with status $rc")
    fi
    if [ $((p + f + s)) -eq 0 ]; then
        f=1
        notes+=("fail $name: no test ran")
    fi
    printf '    %d passed, %d failed, %d skipped in %s\n' "$p" "$f" "$s" "$folder"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# counted NAME LOG COMMAND...: a command whose last line is "N passed, N failed"; adds its counts.
counted() {
    local name=$1 log=$LOGS/$2 rc=0 p f
    shift 2
    smg_quiet "$log" "$name" "$@" || rc=$?
    read -r p f <<<"$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$log" | tail -n 1)"
    p=${p:-0} f=${f:-0}
    if [ $((p + f)) -eq 0 ] || { [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; }; then
        f=1
    fi
    [ "$f" -eq 0 ] || notes+=("fail $name: see $log")
    printf '    %d passed, %d failed\n' "$p" "$f"
    passed=$((passed + p)) failed=$((failed + f))
}

# Fuzz targets alone, each for 5 s.
build_fuzz() {
    smg_configure build-fuzz --enable-werror --enable-fuzzing CC=clang CFLAGS="-O1 -gline-tables-only" --without-simgrid \
        --without-libfabric --without-verbs --without-cuda && smg_make build-fuzz fuzz-targets
}

show_log() {
    echo "---- $1"
    tail -n 40 "$1" 2>/dev/null
    echo "----"
}

# Lines of the file are patterns of test names.
expected_skip() {
    local name=${1#skip } pattern
    name=${name%%:*}
    [ -n "${CI:-}" ] || return 0
    while IFS= read -r pattern; do
        # shellcheck disable=SC2254
        case $name in $pattern) return 0 ;; esac
    done < <(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' tests/expected-skips.txt)
    notes+=("fail $name: this skip is not expected here (tests/expected-skips.txt)")
    return 1
}

# refused NAME TEXT ARGUMENT...: configure must stop, and say TEXT.
refused() {
    local name=$1 text=$2
    shift 2
    if smg_quiet "$LOGS/refused.log" "configure refuses $name" must_refuse "$text" "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        notes+=("fail configure accepts $name")
    fi
}

must_refuse() {
    local text=$1 log rc=0
    shift
    rm -rf build-refused
    mkdir build-refused
    log=$(cd build-refused && ../configure "$@" 2>&1) || rc=$?
    rm -rf build-refused
    echo "$log"
    [ "$rc" -ne 0 ] && grep -q "error: .*$text" <<<"$log"
}

start=$EPOCHREALTIME
smg_packages $SMG_BUILD_PACKAGES $SMG_TEST_PACKAGES
smg_quiet "$LOGS/autoreconf.log" "autoreconf" smg_autoreconf || smg_die "autoreconf failed"

# The tests of this build are run by distcheck, from the tarball.
if smg_quiet "$LOGS/build-gcc.log" "configure, gcc" smg_configure build-gcc CC=gcc; then
    distcheck build-gcc
else
    failed=$((failed + 1))
    notes+=("fail configure, gcc")
fi
build "build, clang" build-clang CC=clang CFLAGS=-O2
bare="CC=gcc CFLAGS=-O0"
# CUDA's objects are the same in every build, and take long: two have them, the one above and the one that distcheck makes.
build "build without simgrid, cuda" build-no-simgrid $bare --without-simgrid --without-cuda
build "build without libfabric, cuda" build-no-libfabric $bare --without-libfabric --without-cuda
build "build without verbs, cuda" build-no-verbs $bare --without-verbs --without-cuda
build "build without all of them" build-none $bare --without-simgrid --without-libfabric --without-verbs --without-cuda \
    --without-openblas
counted "valgrind" valgrind.log smg_make build-none valgrind VALGRIND_HOW=fast
if smg_quiet "$LOGS/build-fuzz.log" "build, fuzz targets" build_fuzz; then
    passed=$((passed + 1))
    counted "fuzz, 5 s each" fuzz.log smg_make build-fuzz fuzz FUZZ_SECONDS=5
else
    failed=$((failed + 1))
    notes+=("fail build: fuzz targets")
fi
refused "a missing CUDA toolkit" "--with-cuda was asked for" --with-cuda=/nonexistent
refused "missing verbs" "--with-verbs was asked for" --with-verbs ac_cv_header_infiniband_verbs_h=no
refused "an unknown sanitizer" "'adress' is none of" --enable-sanitizers=adress
refused "fuzzing without libFuzzer" "gcc has no libFuzzer" CC=gcc --enable-fuzzing
if build "build, address and undefined sanitizers" build-asan CC=gcc CFLAGS="-O1 -g" --enable-sanitizers=address,undefined --without-cuda; then
    check "make check, address and undefined sanitizers" build-asan check
fi
if build "build, thread sanitizer" build-tsan CC=gcc CFLAGS="-O1 -g" --enable-sanitizers=thread --without-cuda; then
    check "make check-threads, thread sanitizer" build-tsan check-threads
fi

echo
echo "total time: $(smg_seconds_since "$start")"
[ ${#notes[@]} -eq 0 ] || printf '%s\n' "${notes[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
