#!/bin/bash
# clean-room.sh BASE [COMMAND...]: builds and tests the last commit as on a bare Debian. Needs root and debootstrap.
#
# BASE is a folder with a minimal Debian; it is made when absent, and never changed later. A copy of it, removed at the end, gets
# the files of HEAD in /src; there ./run.sh and then ./test.sh run (or COMMAND instead). Packages come from the mirrors this
# machine uses: its /etc/apt is mounted read-only. All mounts live in a namespace of their own and end with it.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
base=$(realpath -m "$1")
shift
[ $# -gt 0 ] || set -- sh -c './run.sh && ./test.sh'
[ "$(id -u)" -eq 0 ] || { echo "clean-room.sh needs root" >&2; exit 1; }
cd "$(dirname "$0")/.."

# Release and mirror of this machine, from either form of apt sources.
mirror() {
    local uri
    uri=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ { print $2; exit }')
    [ -n "$uri" ] || uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /:\//) { print $i; exit } }')
    [ -n "$uri" ] || { echo "no mirror in the apt sources of this machine" >&2; return 1; }
    echo "$uri"
}

if [ ! -e "$base/etc/debian_version" ]; then
    command -v debootstrap >/dev/null || { echo "debootstrap is missing" >&2; exit 1; }
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    debootstrap --variant=minbase "$release" "$base.part" "$(mirror)"
    mv "$base.part" "$base"
fi

root=$(mktemp -d "$base.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
cp -a "$base/." "$root/"
mkdir -p "$root/src"

proxies=()
for name in http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || proxies+=("$name=${!name}")
done

rc=0
ROOT=$root unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$ROOT/proc"
    mount --rbind /dev "$ROOT/dev"
    mount -t tmpfs tmpfs "$ROOT/tmp"
    cp /etc/resolv.conf /etc/hosts "$ROOT/etc/"
    mount --bind -o ro /etc/apt "$ROOT/etc/apt"
    mount -t tmpfs tmpfs "$ROOT/src"
    git archive HEAD | tar -x -C "$ROOT/src"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI=true DEBIAN_FRONTEND=noninteractive \
        chroot "$ROOT" sh -c "cd /src && exec env \"\$@\"" clean-room "$@"' clean-room "${proxies[@]}" "$@" || rc=$?
echo "clean room: exit status $rc"
exit "$rc"
