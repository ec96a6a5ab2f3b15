#!/bin/bash
# The comfort of the command line: libfabric is loaded only when it is wanted; progress on a terminal and nothing on a pipe; manual page
# and completion that agree with the tables; help, doctor, plan. No check depends on how long something takes.
. "$top_srcdir/tests/e2e/lib.sh"

small=$top_srcdir/tests/e2e/small.yaml
commands=$("$SMARTGEN" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 11 ] || fail "--help lists $(wc -w <<<"$commands") commands"

# options COMMAND: its long options, by its help.
options() {
    "$SMARTGEN" "$1" --help | sed -n 's/^  .. *,\{0,1\} *\(--[a-z-]*\).*/\1/p'
}

# ---- libfabric ----
# A program that is not installed may be a script of libtool beside the real one.
programs=("$SMARTGEN")
[ "$(head -c 2 "$SMARTGEN")" != '#!' ] || programs=("$(dirname "$SMARTGEN")/.libs/$(basename "$SMARTGEN")")
for file in "$top_builddir"/.libs/libsmartgen.so; do
    [ ! -f "$file" ] || programs+=("$file")
done
if command -v readelf >/dev/null; then
    for file in "${programs[@]}"; do
        readelf -d "$file" >"$work/needed" || fail "readelf cannot read $file"
        grep -q 'NEEDED.*libc\.so' "$work/needed" || fail "readelf shows no libc in $file" "$work/needed"
        ! grep -q 'NEEDED.*libfabric' "$work/needed" || fail "$file is linked to libfabric" "$work/needed"
    done
    ok "libfabric is not linked: ${programs[*]##*/}"
else
    skip_part "no readelf: what the program is linked to cannot be seen"
fi
# A machine whose libfabric does not load.
mkdir "$work/broken"
: >"$work/broken/libfabric.so.1"
(
    export LD_LIBRARY_PATH=$work/broken
    must "list without libfabric" 0 list models
    must "sim without libfabric" 0 sim "$small" --engine native
    must "doctor without libfabric" 0 doctor
    grep -qE '^ *libfabric +no ' "$work/stdout" || fail "doctor without libfabric" "$work/stdout"
    must "emu without libfabric" 2 emu "$small" -o "$work/none"
    one_line "emu without libfabric"
    says "emu without libfabric" libfabric
    [ ! -e "$work/none" ] || fail "emu without libfabric left a folder"
) || exit 1
ok "without a libfabric that loads: list, sim and doctor work; emu says what is missing"

# ---- Progress ----
must "sim on a pipe" 0 sim "$small" --engine native -o "$work/silent"
[ ! -s "$work/stderr" ] || fail "sim on a pipe prints" "$work/stderr"
must "sim --progress" 0 sim "$small" --engine native --progress -o "$work/loud"
grep -qE '^sim: +[0-9]+ %.* of [0-9]+ tokens, ([0-9]+) of \1 requests$' "$work/stderr" || fail "sim --progress: no last line" "$work/stderr"
! grep -q $'\r' "$work/stderr" || fail "sim --progress on a pipe rewrites lines"
for file in requests.csv tokens.csv events.bin actions.bin; do
    same "progress has no effect" "$work/silent/$file" "$work/loud/$file"
done
must "sim --progress --quiet" 0 sim "$small" --engine native --progress --quiet
[ ! -s "$work/stdout" ] && [ ! -s "$work/stderr" ] || fail "--quiet with --progress prints" "$work/stderr"
must "profile --progress" 0 profile --progress --requests 1 --steps 2 --set model=llama-3.1-8b --set blocks_per_layer=50 -o "$work/p.kvit"
grep -q '^profile: 100 %.*requests$' "$work/stderr" || fail "profile --progress" "$work/stderr"
must "figures --progress" 0 figures fig02 --progress -o "$work/figures"
grep -q '^figures: 100 %.*points$' "$work/stderr" || fail "figures --progress" "$work/stderr"
if has_emu; then
    must "emu --progress" 0 emu "$small" --progress
    grep -q '^emu: 100 %.*tokens' "$work/stderr" || fail "emu --progress" "$work/stderr"
fi
ok "nothing on a pipe; plain lines with --progress; --quiet wins; the records are the same"

# terminal COLUMNS ARGUMENT...: standard error of the program on a terminal that wide, into $work/screen.
terminal() {
    local columns=$1 typed
    shift
    printf -v typed '%q ' "$SMARTGEN" "$@"
    TERM=xterm script -qec "stty cols $columns; $typed >'$work/stdout'" /dev/null </dev/null >"$work/screen" 2>"$work/script" ||
        fail "smartgen $* on a terminal: exit status $?" "$work/screen"
}
if command -v script >/dev/null && TERM=xterm script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    terminal 200 sim "$small" --engine native
    # The first line is there at once; in the end the cursor is where it was, before nothing.
    LC_ALL=C grep -q $'^\rsim: *0 %, 0 of [0-9]* tokens' "$work/screen" || fail "no progress on a terminal" "$work/screen"
    tail -c 40 "$work/screen" | LC_ALL=C grep -qE $'\r +\r$' || fail "the line is not erased" "$work/screen"
    [ -s "$work/stdout" ] || fail "the result is not on standard output"
    terminal 24 sim "$small" --engine native
    tr '\r' '\n' <"$work/screen" | awk 'length($0) > 23 { exit 1 }' || fail "progress is wider than a narrow terminal" "$work/screen"
    tr '\r' '\n' <"$work/screen" | awk '/^sim:/ { n++ } END { exit !n }' || fail "no progress on a narrow terminal" "$work/screen"
    terminal 80 sim "$small" --engine native --quiet
    [ ! -s "$work/screen" ] || fail "--quiet prints on a terminal" "$work/screen"
    ok "on a terminal: one line, as wide as it may be, erased at the end"
else
    skip_part "no script: progress on a terminal cannot be seen"
fi

# ---- Help ----
for command in $commands; do
    must "help $command" 0 help "$command"
    mv "$work/stdout" "$work/help"
    must "$command --help" 0 "$command" --help
    same "help $command" "$work/help" "$work/stdout"
    # An example has only options that the command takes.
    examples=$(sed -n "s/^  smartgen \($command\)/\1/p" "$work/help")
    [ -n "$examples" ] || fail "$command has no example (cli/help.c)" "$work/help"
    known=$(options "$command")
    for word in $examples; do
        case $word in --*) grep -qx -- "$word" <<<"$known" || fail "$command: an example has $word" "$work/help" ;; esac
    done
done
must "help" 0 help
grep -q '^usage: smartgen COMMAND' "$work/stdout" || fail "help" "$work/stdout"
must "help of an unknown command" 2 help pla
says "help of an unknown command" plan
must "--version" 0 --version
head -n 1 "$work/stdout" | grep -qE '^smartgen [0-9]+\.[0-9]+\.[0-9]+$' || fail "--version: first line" "$work/stdout"
for what in simgrid libfabric verbs cuda; do
    grep -q "^$what " "$work/stdout" || fail "--version: $what" "$work/stdout"
done
ok "help COMMAND, an example for each of $(wc -w <<<"$commands") commands, --version"

# ---- Manual page ----
must "man" 0 man
cp "$work/stdout" "$work/smartgen.1"
[ ! -f "$top_builddir/smartgen.1" ] || same "the built manual page" "$work/smartgen.1" "$top_builddir/smartgen.1"
sed 's/\\-/-/g; s/\\&//; s/\\f[BIR]//g' "$work/smartgen.1" >"$work/plain"
for command in $commands; do
    grep -qx ".SS \"$command\"" "$work/plain" || fail "the manual page has no command $command"
    for option in $(options "$command"); do
        grep -qE -- "^(-.*, )?$option( |$)" "$work/plain" || fail "the manual page has no option $option" "$work/plain"
    done
done
"$SMARTGEN" list keys | awk '{ print $1 }' >"$work/keys"
while read -r key; do
    grep -qF "$key (default " "$work/plain" || fail "the manual page has no key $key"
done <"$work/keys"
for name in $(grep -rhoE '"SMARTGEN_[A-Z]+"' "$top_srcdir"/{cli,traces,sim,emu,experiments} --include='*.c' | grep -o 'SMARTGEN_[A-Z]*' | sort -u); do
    grep -qx "$name" "$work/plain" || fail "the manual page has no variable $name"
done
! grep -n "^[.'][^A-Za-z\\\\]" "$work/smartgen.1" || fail "the manual page has a line that roff misreads"
if command -v groff >/dev/null && groff -man -Tutf8 </dev/null >/dev/null 2>&1; then
    groff -man -Tutf8 -ww "$work/smartgen.1" >"$work/page" 2>"$work/stderr" || fail "groff" "$work/stderr"
    [ ! -s "$work/stderr" ] || fail "groff warns of the manual page" "$work/stderr"
    [ "$(wc -l <"$work/page")" -gt 300 ] || fail "the manual page is short" "$work/page"
else
    skip_part "no groff: the manual page is not set"
fi
ok "the manual page has every command, option, key ($(wc -l <"$work/keys")) and variable"

# ---- Completion ----
must "completion bash" 0 completion bash
cp "$work/stdout" "$work/completion.bash"
must "completion zsh" 0 completion zsh
cp "$work/stdout" "$work/_smartgen"
must "completion of an unknown shell" 2 completion bsh
says "completion of an unknown shell" bash zsh
mkdir -p "$work/cwd/sub"
touch "$work/cwd/a.yaml" "$work/cwd/b.yml" "$work/cwd/c.json"

# offers LINE WORD...: what bash completes at the end of the line, in the order of names.
offers() {
    local line=$1 want got
    shift
    want=$(printf '%s\n' "$@" | sort -u | xargs)
    # As bash calls it: the words are cut at '=' too.
    got=$(cd "$work/cwd" && bash -c '
        . "$1"
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$3
        read -ra COMP_WORDS <<<"${2//=/ = }"
        COMP_WORDS[0]=$4
        [[ $2 != *[[:space:]] ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _smartgen
        printf "%s\n" "${COMPREPLY[@]}"' - "$work/completion.bash" "$line" "${breaks:- =:}" "$SMARTGEN" | sort -u | xargs)
    [ "$got" = "$want" ] || fail "completion of '$line': '$got', expected '$want'"
}
offers "smartgen " $commands --help --version
offers "smartgen su" summarize
for command in $commands; do
    offers "smartgen $command -" $(options "$command")
done
offers "smartgen sim --engine nat" native
offers "smartgen sim --engine=nat" native
offers "smartgen emu --role " all auto decode prefill router
offers "smartgen sim --set scheme=sm" smartgen
offers "smartgen sim --set=scheme=sm" smartgen
offers "smartgen sim -s speculative.st" speculative.start=
offers "smartgen sim --set speculative.start=" first second
offers "smartgen sim --set decode.gpu=h" h100 h200
models=$("$SMARTGEN" list models | awk '{ print $1 }')
offers "smartgen sim --set model=" $models
offers "smartgen sim --set model=./" ./a.yaml ./b.yml ./c.json ./sub
offers "smartgen sim --set model=c.j" c.json
offers "smartgen kernels " list measure quality
offers "smartgen kernels measure " a.yaml b.yml sub
offers "smartgen sim --set gdr=" true false
offers "smartgen sim --set seed="
offers "smartgen sim --set proactive.importance=" auto a.yaml b.yml c.json sub
offers "smartgen sim " a.yaml b.yml sub
offers "smartgen replay " sub
offers "smartgen sim -o c" c.json
offers "smartgen list m" models
offers "smartgen figures val" validation
offers "smartgen help summ" summarize
offers "smartgen emu --timeout "
breaks=' ' offers "smartgen sim --set scheme=sm" scheme=smartgen
breaks=' ' offers "smartgen sim --set=scheme=sm" --set=scheme=smartgen
(cd "$work/cwd" && bash -c '. "$1"; complete -p smartgen' - "$work/completion.bash") >"$work/stdout" || fail "the completion is not registered"
if command -v zsh >/dev/null; then
    zsh -n "$work/_smartgen" || fail "zsh does not read its completion"
else
    skip_part "no zsh: its completion is not read"
fi
for command in $commands; do
    grep -qx "    ($command)" "$work/_smartgen" || fail "the completion for zsh has no $command"
    for option in $(options "$command"); do
        grep -qF -- "$option" "$work/_smartgen" || fail "the completion for zsh has no $option"
    done
done
ok "completion in bash: commands, options, values, keys, files, with '=' as a word break and without; in zsh: every option"

# ---- doctor ----
(
    export PATH=/nonexistent SMARTGEN_DATA=/nonexistent SMARTGEN_PLOTS=/nonexistent SMARTGEN_EXPERIMENTS=/nonexistent
    "$SMARTGEN" doctor
) >"$work/stdout" 2>"$work/stderr" && rc=0 || rc=$?
[ "$rc" -eq 1 ] || fail "doctor where nothing is, not even data: exit status $rc" "$work/stderr"
grep -q "set SMARTGEN_DATA to a folder of data files" "$work/stdout" || fail "doctor: SMARTGEN_DATA is set, and wrong" "$work/stdout"
for name in gnuplot data plots experiments; do
    grep -qE "^ +$name +no " "$work/stdout" || fail "doctor where nothing is: $name" "$work/stdout"
    sed -n '/^For what is missing/,$p' "$work/stdout" | grep -qE "^ +$name +(install|set) " || fail "doctor says no remedy for $name" "$work/stdout"
done
must "doctor" 0 doctor
sed -n 's/^  \(.\{12\}\) \(yes \|no  \|-   \) .*/\1/p' "$work/stdout" | sed 's/ *$//' >"$work/names"
must "doctor --json" 0 doctor --json
[ "$(grep -c '"name":' "$work/stdout")" -eq "$(wc -l <"$work/names")" ] || fail "doctor and doctor --json do not say the same" "$work/stdout"
while read -r name; do
    grep -qF "\"name\": \"$name\"" "$work/stdout" || fail "doctor --json: $name" "$work/stdout"
done <"$work/names"
# What nothing needs today is not missing.
must "doctor" 0 doctor
grep -qE '^  huge pages +(yes|-) ' "$work/stdout" || fail "doctor: reserved huge pages are missed, which nothing asks for" "$work/stdout"
grep -qE '^  cuda +(yes|-) .* kernels on a GPU$' "$work/stdout" || fail "doctor: cuda" "$work/stdout"
! sed -n '/^For what is missing/,/^$/p' "$work/stdout" | grep -E '^  (cuda|gpu|huge pages) ' || fail "doctor: what is optional is said to be missing" "$work/stdout"
if grep -qE '^  rdma +no ' "$work/stdout"; then
    grep -qE '^  memlock +(yes|-) ' "$work/stdout" || fail "doctor: memlock without an RDMA device" "$work/stdout"
fi
for name in memlock "open files" "huge pages" cpus; do
    grep -qx "$name" "$work/names" || fail "doctor: $name" "$work/names"
done
ok "doctor: $(wc -l <"$work/names") facts, also where nothing is, and as JSON"

# ---- Standard input ----
sed "s|\.\./\.\./|$top_srcdir/|g" "$small" >"$work/small.yaml"
must "sim of a file" 0 sim "$work/small.yaml" --engine native -o "$work/of-file"
must "sim of standard input" 0 sim - --engine native -o "$work/of-stdin" <"$work/small.yaml"
must "sim of a pipe" 0 sim <(cat "$work/small.yaml") --engine native -o "$work/of-pipe"
for folder in of-stdin of-pipe; do
    for file in requests.csv tokens.csv events.bin actions.bin; do
        same "a scenario that is no file" "$work/of-file/$file" "$work/$folder/$file"
    done
    replayed "a scenario that is no file" "$work/$folder"
done
[ "$(json_value "$work/of-stdin/run.json" name)" = "<stdin>" ] || fail "run.json does not name standard input" "$work/of-stdin/run.json"
[ "$(grep -c fnv1a64 "$work/of-pipe/run.json")" -eq "$(($(grep -c fnv1a64 "$work/of-file/run.json") - 1))" ] ||
    fail "run.json has a digest of a pipe" "$work/of-pipe/run.json"
must "help of a command with a scenario" 0 plan --help
grep -q -- '- is standard input' "$work/stdout" || fail "the help does not say what - is" "$work/stdout"
ok "a scenario on standard input, and through a pipe: the records of the file"

# ---- plan ----
must "plan --json" 0 plan --json
cp "$work/stdout" "$work/plan.json"
must "plan" 0 plan
for key in kv_bytes metadata_bytes proactive_bytes speculative_bytes; do
    grep -qE " $(json_value "$work/plan.json" $key) B( |$)" "$work/stdout" || fail "plan: $key is not in the table" "$work/stdout"
done
for key in tp_s tt_s ttft_s ttst_s tbt_s; do
    # JSON writes 9 digits as well, perhaps with zeros at the end.
    grep -qF " $(json_value "$work/plan.json" $key | awk '{ printf "%.9g", $1 }') s" "$work/stdout" || fail "plan: $key is not in the table" "$work/stdout"
done
# Tokens that do not exist have no latency, and nothing is sent for them.
must "plan of one token" 0 plan --set workload.output_tokens=1 --set workload.kind=poisson --set workload.rate=0.1
grep -qE '^  TTST +- ' "$work/stdout" && grep -qE '^  TBT +-$' "$work/stdout" || fail "plan of one token" "$work/stdout"
for row in "pushed (proactive)" "speculative, in all"; do
    grep -qF "  $row" "$work/stdout" && grep -F "  $row" "$work/stdout" | grep -q ' 0 B' || fail "plan of one token: $row" "$work/stdout"
done
[ "$(grep -cE '^  (prefill|decode) link +0.0 %' "$work/stdout")" -eq 2 ] || fail "plan of one token: busy links" "$work/stdout"
must "plan of one token" 0 plan --json --set workload.output_tokens=1
[ "$(json_value "$work/stdout" ttst_s) $(json_value "$work/stdout" tbt_s)" = "null null" ] || fail "plan of one token" "$work/stdout"
must "plan of two tokens" 0 plan --json --set workload.output_tokens=2
[ "$(json_value "$work/stdout" ttst_s)" != null ] && [ "$(json_value "$work/stdout" tbt_s)" = null ] || fail "plan of two tokens" "$work/stdout"
# Speculation that the link cannot carry beside decoding is told, and TBT is not called the same.
must "plan of a slow link" 0 plan --set decode.link_gbps=1
grep -q "warning: speculation needs the decode link" "$work/stdout" || fail "plan of a slow link: no warning" "$work/stdout"
grep -q "TBT at least" "$work/stdout" && ! grep -q "TBT the same" "$work/stdout" || fail "plan of a slow link" "$work/stdout"
must "plan" 0 plan
! grep -q "warning: speculation" "$work/stdout" || fail "plan of the default scenario warns" "$work/stdout"
# Both say the same three things.
said=$(sed -n 's/^synthetic://p' "$work/stdout")
for what in importance selection workload; do
    case $(json_value "$work/plan.json" $what) in
    true) [[ " $said " == *" $what "* ]] || fail "plan: does not say that $what is synthetic" "$work/stdout" ;;
    false) [[ " $said " != *" $what "* ]] || fail "plan: says that $what is synthetic" "$work/stdout" ;;
    *) fail "plan --json: synthetic.$what" "$work/plan.json" ;;
    esac
done
! grep -q ' $' "$work/stdout" || fail "plan: blanks at the end of a line"
[ "$(grep -c '^In short' "$work/stdout")" -eq 1 ] || fail "plan: no conclusion" "$work/stdout"

# concludes NAME TEXT ARGUMENT...
concludes() {
    local name=$1 text=$2
    shift 2
    must "plan, $name" 0 plan "$@"
    grep '^In short' "$work/stdout" | grep -qF -- "$text" || fail "plan, $name: '$text' is not in the conclusion" "$work/stdout"
}
concludes "default" "selective transfer is on"
concludes "all by force" "proactive.kr_blocks has everything pushed, which takes 4.93 times the window; full transfer does as well" --set proactive.kr_blocks=40000
concludes "more than fits" "of which 20 % fits behind prefill; proactive.kr_blocks has 50 % pushed, and what arrives late is not in these forms" --set proactive.kr_blocks=20000
concludes "streamingllm, all of it" "nothing is left out, and attention reads all of it. Against full transfer: TTST " --set scheme=streamingllm --set decode.link_gbps=400
concludes "full, a key in vain" "smartgen would have TTST 464.3 ms" --set scheme=full --set proactive.kr_blocks=2000
concludes "fast links" "selective transfer is off: all of the KV fits" --set decode.link_gbps=400 --set prefill.link_gbps=400
concludes "scheme full" "smartgen would have TTST" --set scheme=full
concludes "eviction" "the rest is left out" --set scheme=proactive-only
concludes "too fast a workload" "which cannot keep up" --set workload.kind=poisson --set workload.rate=50
grep -q 'warning: a utilisation is at 80 %' "$work/stdout" || fail "plan of a workload that is too fast: no warning" "$work/stdout"
must "plan of too large a prompt" 0 plan --set decode.host_memory_gib=0.5
grep -q 'requests will fail' "$work/stdout" || fail "plan of too large a prompt: no warning" "$work/stdout"
ok "plan: the table has the numbers of --json, the conclusion says what holds"
finish
