#!/bin/bash
# rdma-vm.sh [-p PROGRAM]... [-f FILE:PATH]... SCRIPT: runs SCRIPT in a virtual machine that has two soft-RoCE devices.
#
# The devices are rxa (10.0.0.1) and rxb (10.0.0.2), on the two ends of a virtual cable; verbs traffic between them crosses it.
# This machine's kernel needs nothing for it, and nothing is installed: Debian's kernel and a few packages are downloaded with
# apt-get into a cache folder and unpacked there, once. PROGRAMs are in PATH, with their libraries; a FILE or folder appears at
# PATH. SCRIPT is for sh.
#
# Exit status: that of SCRIPT if it is 0 to 49 or 77, 50 for any other (then the last line says which); 124: SCRIPT took too long;
# 125: the machine did not answer, twice; 77 with a line "skip: REASON": it cannot run here. One machine runs at a time.
#
#   SMG_VM_CACHE   cache folder (default $XDG_CACHE_HOME/smartgen)
#   SMG_VM_LIMIT   seconds for one run (default 120)
#   SMG_VM_MEMORY  MiB (default 1024)
set -euo pipefail

usage() {
    sed -n '2,16s/^# \{0,1\}//p' "$0"
    exit 2
}

skip() {
    echo "skip: $*"
    exit 77
}

programs=() files=()
while getopts p:f: option; do
    case $option in
    p) programs+=("$OPTARG") ;;
    f) files+=("$OPTARG") ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
script=$1

PATH=$PATH:/usr/sbin:/sbin
arch=$(uname -m)
[ "$arch" = x86_64 ] || skip "the virtual machine is made for x86_64, this is $arch"
for tool in qemu-system-x86_64 apt-get dpkg-deb xz objcopy ip rdma tc flock; do
    command -v $tool >/dev/null || skip "$tool is not installed (packages qemu-system-x86 iproute2 xz-utils binutils)"
done

cache=${SMG_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/smartgen}
mkdir -p "$cache" 2>/dev/null || skip "the cache folder $cache cannot be made"
kit=$cache/rdma-vm-3 # number: layout of this folder
lib=usr/lib/x86_64-linux-gnu
modules="crc32_generic udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe veth sch_tbf sch_netem sch_sfq"
work=$(mktemp -d "${TMPDIR:-/tmp}/rdma-vm-XXXXXX")
trap 'rm -rf "$work"' EXIT
exec 9>"$cache/rdma-vm.lock"
flock 9

# ---- Kernel, modules, busybox and the driver in user space: once ----

# le32 FILE OFFSET: a number of the kernel's header.
le32() {
    od -An -tu4 -j"$2" -N4 "$1" | tr -d ' '
}

# The machine starts the plain kernel faster than the packed one, by what unpacking costs there.
unpack_kernel() {
    local packed=$1 out=$2 sectors offset bytes size
    sectors=$(od -An -tu1 -j$((0x1f1)) -N1 "$packed" | tr -d ' ')
    [ "$sectors" -gt 0 ] || sectors=4
    offset=$(($(le32 "$packed" $((0x248))) + (sectors + 1) * 512))
    bytes=$(le32 "$packed" $((0x24c)))
    tail -c +$((offset + 1)) "$packed" | head -c "$bytes" >"$out.packed" || true
    size=$(le32 "$out.packed" $((bytes - 4)))
    case $(od -An -tx1 -N4 "$out.packed" | tr -d ' ') in
    28b52ffd) zstd -dc <"$out.packed" 2>/dev/null | head -c "$size" >"$out" || true ;;
    *) xz -dc --single-stream <"$out.packed" 2>/dev/null | head -c "$size" >"$out" || true ;;
    esac
    rm "$out.packed"
    [ "$(od -An -tx1 -N4 "$out" | tr -d ' ')" = 7f454c46 ] && [ "$(stat -c %s "$out")" = "$size" ]
}

make_kit() {
    local new=$work/kit kernel m deb
    mkdir -p "$new/debs" "$new/root" "$new/m"
    kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
    [ -n "$kernel" ] || skip "the package lists have no linux-image-amd64 (apt-get update)"
    echo "rdma-vm: downloading $kernel and three small packages, about 75 MB, into $cache"
    (cd "$new/debs" && apt-get download -q "$kernel" busybox-static ibverbs-providers libibverbs1) >"$work/log" 2>&1 ||
        skip "apt-get cannot download $kernel: $(tail -n 1 "$work/log")"
    for deb in "$new"/debs/*.deb; do
        case ${deb##*/} in
        linux-image*)
            dpkg-deb --fsys-tarfile "$deb" |
                tar -x -C "$new/root" --wildcards './boot/vmlinuz*' $(printf '*/%s.ko ' $modules)
            ;;
        *) dpkg-deb -x "$deb" "$new/root" ;;
        esac
    done
    unpack_kernel "$new"/root/boot/vmlinuz-* "$new/vmlinux" || skip "the kernel of $kernel cannot be unpacked"
    for m in $modules; do
        objcopy --strip-debug "$(find "$new/root" -name "$m.ko" | head -n 1)" "$new/m/$m.ko"
        echo "$m.ko" >>"$new/m/list"
    done
    cp "$(find "$new/root" -path '*bin/busybox' | head -n 1)" "$new/busybox"
    cp "$new/root/$lib/libibverbs/librxe-rdmav34.so" "$new/root/etc/libibverbs.d/rxe.driver" "$new/"
    rm -rf "$new/debs" "$new/root"
    rm -rf "$kit"
    mv "$new" "$kit"
}

[ -f "$kit/vmlinux" ] && [ -f "$kit/rxe.driver" ] || make_kit

# ---- The file system that the machine starts from ----

root=$work/root
mkdir -p "$root"/{bin,m,proc,sys,dev,tmp,work,lib64,etc/libibverbs.d} "$root/$lib/libibverbs"
ln -s usr/lib "$root/lib"
cp "$kit/busybox" "$root/bin/"
for applet in sh mount insmod dd reboot cat sleep grep head tail timeout kill mkdir rm ls sed awk cmp seq date sort cut wc tr cp \
    uname dmesg netstat; do
    ln -s busybox "$root/bin/$applet"
done
cp "$kit"/m/* "$root/m/"
cp "$kit/librxe-rdmav34.so" "$root/$lib/libibverbs/"
cp "$kit/rxe.driver" "$root/etc/libibverbs.d/"

# busybox prefers its own applets to programs in PATH, and its ip knows no veth: hence another shell.
for program in "$(command -v dash)" "$(command -v ip)" "$(command -v tc)" "$(command -v rdma)" "${programs[@]}"; do
    cp -L "$program" "$root/bin/"
    ldd "$program" 2>/dev/null | awk '/=> \//{ print $3 } /^\t\/lib64/{ print $1 }' || true
done | sort -u | while read -r needed; do
    case $needed in
    /lib64/*) cp -L "$needed" "$root/lib64/" ;;
    *) cp -L "$needed" "$root/$lib/" ;;
    esac
done
# Debug symbols are most of a program's size, and memory of the machine.
for program in "${programs[@]}"; do
    strip "$root/bin/${program##*/}" 2>/dev/null || true
done
for pair in "${files[@]}"; do
    mkdir -p "$root/$(dirname "${pair##*:}")"
    cp -rL "${pair%:*}" "$root/${pair##*:}"
done
cp "$script" "$root/work/script"

# Both devices live in the first network namespace: rdma_rxe knows no other. Without these rules the kernel would send what goes to an
# address of its own over the loopback device, past the cable.
cat >"$root/work/net-up" <<'X'
set -e
ip -batch - <<Y
link set lo up
link add va mtu 4200 address 02:00:00:00:00:01 type veth peer name vb mtu 4200 address 02:00:00:00:00:02
addr add 10.0.0.1/24 dev va
addr add 10.0.0.2/24 dev vb
Y
for d in va vb; do
    echo 1 > /proc/sys/net/ipv4/conf/$d/accept_local
    echo 0 > /proc/sys/net/ipv4/conf/$d/rp_filter
    echo 1 > /proc/sys/net/ipv6/conf/$d/disable_ipv6
done
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
ip -batch - <<Y
link set va up
link set vb up
neigh replace 10.0.0.2 dev va lladdr 02:00:00:00:00:02 nud permanent
neigh replace 10.0.0.1 dev vb lladdr 02:00:00:00:00:01 nud permanent
rule add pref 1 iif va lookup local
rule add pref 2 iif vb lookup local
rule add pref 10 from 10.0.0.1 to 10.0.0.2 lookup 100
rule add pref 11 from 10.0.0.2 to 10.0.0.1 lookup 101
rule add pref 100 lookup local
rule del pref 0
route add 10.0.0.2 dev va src 10.0.0.1 table 100
route add 10.0.0.1 dev vb src 10.0.0.2 table 101
Y
rdma link add rxa type rxe netdev va
rdma link add rxb type rxe netdev vb
X

# The exit device ends qemu with 2*value+1. The value is status+10, so that qemu's own failures can never be taken for a result.
cat >"$root/init" <<'X'
#!/bin/sh
export PATH=/bin HOME=/ TMPDIR=/tmp LC_ALL=C.UTF-8
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
mkdir -p /dev/shm; mount -t tmpfs t /dev/shm; mount -t tmpfs t /tmp
while read -r m; do insmod "/m/$m"; done < /m/list
cd /work
ulimit -l unlimited
rc=49
if dash ./net-up; then
    echo "rdma-vm: the script begins"
    dash ./script </dev/null
    rc=$?
else
    echo "rdma-vm: the devices did not come up"
fi
if [ $rc -gt 49 ] && [ $rc -ne 77 ]; then
    echo "rdma-vm: the script ended with status $rc"
    rc=50
fi
sleep 0.05
printf "\\$(printf %o $((rc + 10)))" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null
reboot -f
X
chmod 755 "$root/init"
(cd "$root" && find . | "$kit/busybox" cpio -o -H newc 2>/dev/null) >"$work/initrd"
rm -rf "$root"

# ---- Run ----

# A /dev/kvm alone proves nothing: without the processor's support it is too slow to boot.
accel=tcg cpu=qemu64
if grep -qwE 'svm|vmx' /proc/cpuinfo && [ -w /dev/kvm ]; then
    accel=kvm cpu=host
fi

boot() {
    local q
    set +e
    timeout -k 5 "${SMG_VM_LIMIT:-120}" qemu-system-x86_64 -M q35 -accel $accel -cpu $cpu -smp 2 -m "${SMG_VM_MEMORY:-1024}" \
        -bios qboot.rom -nodefaults -no-user-config -display none -serial stdio -no-reboot \
        -device isa-debug-exit,iobase=0xf4,iosize=1 \
        -kernel "$kit/vmlinux" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet panic=-1 reboot=t tsc=reliable no_timer_check mitigations=off random.trust_cpu=on" \
        </dev/null 9>&- | tr -d '\r' | tee "$work/console"
    q=${PIPESTATUS[0]}
    set -e
    if { [ $((q & 1)) = 1 ] && [ $q -ge 21 ] && [ $q -le 121 ]; } || [ $q -eq 175 ]; then
        return $(((q >> 1) - 10))
    fi
    if [ $q -eq 124 ] && grep -q '^rdma-vm: the script begins' "$work/console"; then
        echo "rdma-vm: the script was not through after ${SMG_VM_LIMIT:-120} s"
        return 124
    fi
    echo "rdma-vm: no exit status from the machine (qemu $q)"
    return 125
}

status=0
boot || status=$?
if [ $status -eq 125 ]; then
    echo "rdma-vm: once more"
    status=0
    boot || status=$?
fi
exit $status
