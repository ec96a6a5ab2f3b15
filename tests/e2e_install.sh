#!/bin/bash
# What an installed SmartGen offers to others: the plug-in example of docs/porting.md (own ranking, hardware, model) is copied out of
# the installed tree and built and run against installed files alone; the library shows its interface and nothing else.
. "$top_srcdir/tests/e2e/lib.sh"

command -v pkg-config >/dev/null || skip_all "pkg-config is not in PATH"
dest=$work/dest
# A make of its own: job server and flags of the outer one do not fit.
unset MAKEFLAGS MFLAGS MAKELEVEL
make -C "$top_builddir" install DESTDIR="$dest" >"$work/install.log" 2>&1 || fail "make install" "$work/install.log"
ok "make install: $(find "$dest" -type f | wc -l) files"

pc=$(find "$dest" -name smartgen.pc)
[ -n "$pc" ] || fail "no smartgen.pc is installed"
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$dest
libdir=$dest$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir smartgen)
prefix=$dest$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=prefix smartgen)
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
built=$SMARTGEN
SMARTGEN=$prefix/bin/smartgen
[ -x "$SMARTGEN" ] || fail "the program is not in $prefix/bin"
# Data must come from the installed tree.
unset SMARTGEN_DATA SMARTGEN_PLOTS
must "installed program" 0 doctor
grep -qE "$prefix/(bin/\.\./)?share" "$work/stdout" || fail "the installed program does not use the installed data" "$work/stdout"
[ "$(pkg-config --modversion smartgen)" = "$("$SMARTGEN" --version | sed -n '1s/smartgen //p')" ] || fail "pkg-config and --version differ"
ok "the installed program uses the installed data; pkg-config knows version $(pkg-config --modversion smartgen)"

# ---- Own ranking, own hardware, own model ----
cp -r "$(find "$dest" -type d -path '*/doc/smartgen/example')" "$work/example"
cd "$work/example"
make CC="${CC:-cc}" CFLAGS="-O1 -Wall -Wextra -Werror ${SMG_SAN_CFLAGS:-}" >"$work/make.log" 2>&1 || fail "the example does not build" "$work/make.log"
ok "the example builds against the installed headers and library"

for engine in $engines; do
    must "plug-in, $engine" 0 sim scenario.yaml --engine "$engine" --set records.decisions=true -o "$work/newest-$engine"
    holds "plug-in, $engine" "$work/newest-$engine"
    replayed "plug-in, $engine" "$work/newest-$engine"
    (cd / && replayed "plug-in, $engine, from another folder" "$work/newest-$engine") || exit 1
done
must "built-in ranking" 0 sim scenario.yaml --engine native --set proactive.ranking=sequential --set records.decisions=true -o "$work/sequential"
! cmp -s "$work/newest-native/decisions.csv" "$work/sequential/decisions.csv" || fail "the plug-in's ranking changes nothing"
# A ranked layer is pushed from its best block on: newest begins at the prompt's end, sequential at its start.
first_pushed() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["action"] == "push" && $c["layer"] == 2 && $c["request"] == 0 { print $c["block_first"]; exit }' "$1/decisions.csv"
}
newest=$(first_pushed "$work/newest-native") sequential=$(first_pushed "$work/sequential")
[ -n "$newest" ] && [ -n "$sequential" ] && [ "$newest" -gt "$sequential" ] ||
    fail "layer 2 is pushed from block '$newest' (newest) and '$sequential' (sequential)"
ok "the plug-in's ranking is what is pushed: layer 2 from block $newest, sequential from $sequential; replay byte-equal"

if has_emu; then
    must "plug-in on the transfer engine" 0 emu scenario.yaml --set selection.source=entry --set workload.output_tokens=4 \
        --set prefill.link_gbps=4 --set decode.link_gbps=4 -o "$work/emu"
    replayed "plug-in on the transfer engine" "$work/emu"
    ok "the same plug-in on the transfer engine, every byte verified"
else
    skip_part "this program is built without libfabric"
fi

./compare >"$work/compare.txt" 2>"$work/compare.err" || fail "the program on libsmartgen fails" "$work/compare.err"
[ "$(wc -l <"$work/compare.txt")" -ge 5 ] && grep -q '^newest ' "$work/compare.txt" || fail "the program's table" "$work/compare.txt"
ok "a program on libsmartgen: $(sed -n 2p "$work/compare.txt")"
if [ -f "$libdir/libsmartgen.a" ]; then
    # shellcheck disable=SC2046
    ${CC:-cc} ${SMG_SAN_CFLAGS:-} $(pkg-config --cflags smartgen) -o compare-static compare.c "$libdir/libsmartgen.a" -rdynamic \
        $(PKG_CONFIG_PATH="$PKG_CONFIG_PATH" pkg-config --static --libs smartgen | sed 's/-lsmartgen//') >"$work/static.log" 2>&1 ||
        fail "the example does not link statically" "$work/static.log"
    SMARTGEN_DATA=$prefix/share/smartgen/data ./compare-static >"$work/static.txt" 2>"$work/static.err" || fail "the static program fails" "$work/static.err"
    same "static and shared" "$work/static.txt" "$work/compare.txt"
    ok "the static library gives the same table"
else
    ok "this build has no static library (--disable-static)"
fi

# ---- Plug-ins that do not fit ----
plugin() {
    printf '#include <core/plugin.h>\n%s\n' "$2" >"$1.c"
    # shellcheck disable=SC2046
    ${CC:-cc} $(pkg-config --cflags smartgen) -fPIC -shared -o "$1.so" "$1.c" || fail "$1.c does not compile"
}
refuses() {
    must "$1" 2 plan scenario.yaml --set policy="$2"
    one_line "$1"
    grep -qF -- "$3" "$work/stderr" || fail "$1: expected: $3" "$work/stderr"
    ok "$1: $(cat "$work/stderr")"
}
score='static int f(const struct smg_rank_input *in, uint32_t l, float *s) { (void)in; (void)l; (void)s; return SMG_OK; }'
plugin abi "const struct smg_plugin smg_plugin = {.abi = 99, .world_bytes = sizeof(struct smg_world), .name = \"x\"};"
plugin layout "const struct smg_plugin smg_plugin = {.abi = SMG_PLUGIN_ABI, .world_bytes = 8, .name = \"x\"};"
plugin empty "SMG_PLUGIN(.name = \"x\");"
plugin none "int unrelated;"
plugin taken "$score static const struct smg_rank_type r = {.name = \"random\", .score = f};
static const struct smg_rank_type *const all[] = {&r, NULL}; SMG_PLUGIN(.name = \"x\", .rankings = all);"
plugin nan "static int f(const struct smg_rank_input *in, uint32_t l, float *s) { (void)l; for (uint32_t b = 0; b < in->grid->blocks; b++) s[b] = 0.f / 0.f; return SMG_OK; }
static const struct smg_rank_type r = {.name = \"newest\", .score = f};
static const struct smg_rank_type *const all[] = {&r, NULL}; SMG_PLUGIN(.name = \"x\", .rankings = all);"
refuses "no number" ./nan.so "./nan.so: ranking 'newest', layer 2, block 0: the score is not a number"
refuses "another interface" ./abi.so "./abi.so: made for plug-in interface 99, this program has 1; compile it again"
refuses "another layout" ./layout.so "./layout.so: compiled with the headers of another version; compile it again"
refuses "brings nothing" ./empty.so "./empty.so: brings neither a scheme nor a ranking"
refuses "exports nothing" ./none.so "./none.so: exports no 'smg_plugin'; define it with SMG_PLUGIN of core/plugin.h"
refuses "a name that is taken" ./taken.so "./taken.so: rankings[0]: 'random' is a built-in ranking; choose another name"
refuses "not a shared object" ./Makefile "./Makefile: cannot be loaded as a plug-in: "
refuses "not there" ./absent.so "./absent.so: cannot open: No such file or directory"
refuses "a folder" ./model "./model: expected a shared object, found something that is not a file"
must "a plug-in in vain" 0 plan scenario.yaml --set policy=./newest.so --set proactive.ranking=random
says "a plug-in in vain" "key 'policy': the plug-in brings no scheme, and proactive.ranking names none of its rankings (newest)"
must "a plug-in that another run of the file is for" 0 plan scenario.yaml --set proactive.ranking=random
[ ! -s "$work/stderr" ] || fail "a plug-in that another run of the file is for: warns" "$work/stderr"
# The conclusion of a plan compares with smartgen itself, not with the plug-in's scheme once more.
plugin whole 'static void f(const struct smg_scenario *s, struct smg_features *o) { (void)s; *o = (struct smg_features){.always_full = 1, .ranking = "sequential"}; }
static const struct smg_scheme s = {.name = "everything", .doc = "all", .features = f}; SMG_PLUGIN(.name = "x", .scheme = &s);'
must "a plug-in's scheme" 0 plan scenario.yaml --set policy=./whole.so --set proactive.ranking=profile
sed -n 's/^In short.*scheme everything sends everything before decoding starts; //p' "$work/stdout" >"$work/everything"
must "the same, built in" 0 plan scenario.yaml --set policy= --set scheme=full --set proactive.ranking=profile
sed -n 's/^In short.*scheme full sends everything before decoding starts; //p' "$work/stdout" >"$work/full"
grep -q 'smartgen would have TTST .* instead of' "$work/full" || fail "a plan's conclusion: smartgen is not another scheme than full" "$work/stdout"
same "a plan's conclusion" "$work/everything" "$work/full"
ok "a plan of a plug-in's scheme compares it with smartgen"
must "a name nobody has" 2 plan scenario.yaml --set proactive.ranking=newst
says "a name nobody has" "did you mean 'newest'?"

# ---- The interface ----
exported() {
    "${NM:-nm}" -D --defined-only -f posix "$1" | awk '$1 ~ /^smg_/ { print $1 }' | sort
}
exported "$libdir/libsmartgen.so" >"$work/library.txt"
exported "$SMARTGEN" >"$work/program.txt"
others=$("${NM:-nm}" -D --defined-only -f posix "$libdir/libsmartgen.so" | awk '$1 !~ /^(smg_|__|_init|_fini|_edata|_end)/ { print $1 }')
[ -z "$others" ] || fail "libsmartgen exports names that are not its own: $others"
# Sanitizers add nothing to these names. A wanted change: nm's list goes into the file, with a word in CHANGELOG.md.
LC_ALL=C sort "$top_srcdir/tests/api-symbols.txt" >"$work/expected.txt"
LC_ALL=C sort -o "$work/library.txt" "$work/library.txt"
LC_ALL=C sort -o "$work/program.txt" "$work/program.txt"
same "symbols of libsmartgen" "$work/expected.txt" "$work/library.txt"
same "symbols that plug-ins find in the program" "$work/expected.txt" "$work/program.txt"
ok "libsmartgen and the program export the $(wc -l <"$work/expected.txt") symbols of tests/api-symbols.txt"

make -C "$top_builddir" uninstall DESTDIR="$dest" >"$work/uninstall.log" 2>&1 || fail "make uninstall" "$work/uninstall.log"
left=$(find "$dest" -type f -o -type l)
[ -z "$left" ] || fail "make uninstall leaves $left"
[ -x "$built" ] || fail "make uninstall removed the built program"
ok "make uninstall leaves nothing"
finish
