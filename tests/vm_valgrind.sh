#!/bin/bash
# make vm-valgrind: a small run of the transfer engine over verbs under valgrind's memcheck, all its processes, in a virtual machine with two
# soft-RoCE devices (scripts/rdma-vm.sh). Two minutes: not part of make check. Needs valgrind and libc6-dbg here.
. "$top_srcdir/tests/e2e/lib.sh"
. "$top_srcdir/tests/e2e/vm.sh"

memcheck=/usr/libexec/valgrind
[ -x /usr/bin/valgrind.bin ] && [ -x "$memcheck/memcheck-amd64-linux" ] || skip_all "valgrind is not installed"
# It finds functions of the loader by name, which only its debug symbols have.
loader=$(readelf -n /lib64/ld-linux-x86-64.so.2 | sed -n 's/.*Build ID: //p')
symbols=/usr/lib/debug/.build-id/${loader:0:2}/${loader:2}.debug
[ -f "$symbols" ] || skip_all "libc6-dbg is not installed"

cat >"$work/script" <<X
. /src/tests/e2e/vm-guest.sh
export VALGRIND_LIB=$memcheck
valgrind.bin --trace-children=yes --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \\
    smartgen emu /src/tests/e2e/small.yaml --fabric verbs --device rxa,rxb --set prefill.nodes=1 --set workload.requests=1 \\
    --set workload.prompt_tokens=100 --set workload.output_tokens=2 --set emu.link=free --timeout 200 --quiet -o run >out 2>&1
rc=\$?
cat out
[ \$rc -eq 0 ] && smartgen replay run
X
files=()
for file in memcheck-amd64-linux vgpreload_core-amd64-linux.so vgpreload_memcheck-amd64-linux.so default.supp; do
    files+=(-f "$memcheck/$file:$memcheck/$file")
done
vm_run -p /usr/bin/valgrind.bin "${files[@]}" -f "$symbols:$symbols"
# Router, prefill, decode: each has its own summary.
clean=$(tr -d '\r' <"$work/log" | grep -c 'ERROR SUMMARY: 0 errors') || true
[ $rc -eq 0 ] && [ "$clean" -eq 3 ] || fail "memcheck: status $rc, $clean of 3 processes without an error" "$work/log"
ok "3 processes over verbs: no error, nothing lost"
finish
