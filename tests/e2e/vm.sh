# Shared by the scripts that run the program over RDMA verbs in a virtual machine (scripts/rdma-vm.sh); read after lib.sh. What runs there is
# $work/script, for sh, and begins with: . /src/tests/e2e/vm-guest.sh

has verbs || skip_all "this program is built without libibverbs"
! grep -q -- '-fsanitize=' "$top_builddir/Makefile" 2>/dev/null ||
    skip_all "a sanitized program is too slow for a virtual machine; other builds run it there"

# vm_run ARGUMENT...: runs $work/script; the arguments are more for rdma-vm.sh. Leaves $rc and $work/log.
vm_run() {
    rc=0
    SMG_VM_LIMIT=${SMG_VM_LIMIT:-550} "$top_srcdir/scripts/rdma-vm.sh" -p "$SMARTGEN" "$@" -f "$top_srcdir/tests/e2e:/src/tests/e2e" \
        -f "$top_srcdir/experiments/emu-small:/src/experiments/emu-small" -f "$top_srcdir/traces/data:/src/traces/data" \
        "$work/script" >"$work/log" 2>&1 || rc=$?
    [ $rc -ne 77 ] || skip_all "$(sed -n 's/^skip: //p' "$work/log")"
}

# vm_checks N ARGUMENT...: the same, and the script must have made N checks.
vm_checks() {
    local want=$1
    shift
    vm_run "$@"
    cat "$work/log"
    checks=$(grep -c '^ok ' "$work/log") || true
    [ $rc -eq 0 ] || fail "the virtual machine ended with status $rc"
    [ "$checks" -eq "$want" ] || fail "$checks checks, expected $want"
}
