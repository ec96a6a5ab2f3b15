# Shared by the scripts that run the program: tests/e2e_*.sh read it first. A script prints one line per check; the first check that
# fails ends it and is named. Everything is written under $work, which goes away at the end.
set -euo pipefail

: "${SMARTGEN:?is the path of the program}"
: "${top_srcdir:?is the source folder}"

work=$(mktemp -d "${TMPDIR:-/tmp}/smartgen-e2e-XXXXXX")
trap 'rm -rf "$work"' EXIT
ulimit -c 0
checks=0
skips=0
start_s=$(date +%s)

ok() {
    checks=$((checks + 1))
    echo "ok   $*"
}

# fail CHECK [FILE...]: ends the script, after the end of each file.
fail() {
    local what=$1 file
    shift
    echo "FAIL $what"
    for file in "$@"; do
        echo "---- ${file##*/}"
        tail -n 20 "$file" 2>/dev/null || true
    done
    exit 1
}

# A part that cannot run here.
skip_part() {
    skips=$((skips + 1))
    echo "skip: $*"
}

# skip_all REASON: the whole script cannot run here.
skip_all() {
    echo "skip: $*"
    exit 77
}

finish() {
    local skipped=
    [ "$skips" -eq 0 ] || skipped=", $skips skipped"
    echo "$checks checks passed$skipped, $(($(date +%s) - start_s)) s"
}

# smg ARGUMENT...: runs the program; $rc, $work/stdout and $work/stderr tell what came of it.
smg() {
    rc=0
    "$SMARTGEN" "$@" >"$work/stdout" 2>"$work/stderr" || rc=$?
    # Not the program's words: AddressSanitizer notes that SimGrid changes stacks.
    if grep -q 'ASan is ignoring requested' "$work/stderr"; then
        sed -i '/ASan is ignoring requested/d; /^False positive error reports may follow/d; /^For details see .*sanitizers/d' "$work/stderr"
    fi
}

# must CHECK RC ARGUMENT...: the program ends with that status.
must() {
    local what=$1 want=$2
    shift 2
    smg "$@"
    [ "$rc" -eq "$want" ] || fail "$what: exit status $rc, expected $want: smartgen $*" "$work/stdout" "$work/stderr"
}

# says CHECK TEXT...: each text is in what the program wrote to standard error.
says() {
    local what=$1 text
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$work/stderr" || fail "$what: '$text' is not in the message" "$work/stderr"
    done
}

one_line() {
    local n
    n=$(wc -l <"$work/stderr")
    [ "$n" -eq 1 ] || fail "$1: $n lines on standard error, expected 1" "$work/stderr"
}

# replayed CHECK FOLDER...: the core takes the recorded events and acts as recorded, byte for byte.
replayed() {
    local what=$1 folder
    shift
    for folder in "$@"; do
        must "$what: replay of ${folder##*/}" 0 replay "$folder"
        grep -q "byte-equal" "$work/stdout" || fail "$what: replay of ${folder##*/} does not say byte-equal" "$work/stdout"
    done
}

# same CHECK FILE FILE
same() {
    cmp -s "$2" "$3" || {
        diff "$2" "$3" >"$work/difference" 2>/dev/null || true
        head -n 20 "$work/difference"
        fail "$1: ${2#"$work/"} and ${3#"$work/"} differ"
    }
}

# json_value FILE KEY: the first value of that key, on one line of its own.
json_value() {
    sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1" | head -n 1
}

# holds CHECK FOLDER: every conservation law of a record folder.
holds() {
    local laws
    laws=$(grep -c '"holds": true' "$2/summary.json") || true
    [ "$laws" -ge 5 ] || fail "$1: $laws conservation laws hold" "$2/summary.json"
    ! grep -q '"holds": false' "$2/summary.json" || fail "$1: a conservation law does not hold" "$2/summary.json"
}

# refused CHECK TEXT ARGUMENT...: one line with that text, exit status 2, nothing printed.
refused() {
    local what=$1 text=$2
    shift 2
    must "$what" 2 "$@"
    one_line "$what"
    says "$what" "$text"
    [ ! -s "$work/stdout" ] || fail "$what: prints" "$work/stdout"
    ok "$what is refused: $(cat "$work/stderr")"
}

# Processes that carry this script's folder on their command line: those of runs that it started.
running() {
    local at line
    for at in /proc/[0-9]*/cmdline; do
        line=$(tr '\0' ' ' 2>/dev/null <"$at") || continue
        case $line in *"$work/"*) echo "$line" ;; esac
    done
}

# nothing_runs CHECK. The last processes may still be going away when the program has ended.
nothing_runs() {
    local i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$(running)" ] || return 0
        sleep 0.1
    done
    fail "$1: still running: $(running)"
}

# Nothing but what the caller names may lie in $work/$1.
leaves() {
    local what=$1 folder=$2 found
    shift 2
    found=$(ls -A "$folder")
    [ "$found" = "$*" ] || fail "$what: left behind: $found"
}

has() {
    "$SMARTGEN" doctor | grep -qE "^ *$1 +yes"
}

has_emu() {
    has libfabric && has tcp
}

engines=native
! has simgrid || engines="simgrid native"
