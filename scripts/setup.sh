# Sourced by run.sh and test.sh: packages, configure, and steps that say their name and time. bash.

SMG_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SMG_JOBS=$(nproc 2>/dev/null || echo 2)

SMG_BUILD_PACKAGES="gcc g++ libc6-dev make autoconf automake libtool pkg-config libjansson-dev libyaml-dev libgsl-dev
    libsimgrid-dev libfabric-dev libibverbs-dev gnuplot-nox"
SMG_TEST_PACKAGES="clang libclang-rt-dev libcmocka-dev valgrind chromium libopenblas-dev qemu-system-x86 iproute2 xz-utils"

smg_die() {
    echo "error: $*" >&2
    exit 1
}

smg_seconds_since() {
    awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'
}

# smg_packages NAME...: installs what is missing, on Debian and its relatives. Elsewhere configure names what it needs.
smg_packages() {
    local missing=() package log
    command -v dpkg-query >/dev/null || return 0
    for package in "$@"; do
        case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
        installed) ;;
        *) missing+=("$package") ;;
        esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || smg_die "these packages are missing; install them as root: apt-get install --no-install-recommends ${missing[*]}"
    echo "installing ${missing[*]}"
    log=$(mktemp)
    if ! smg_apt_install "${missing[@]}" >"$log" 2>&1; then
        # The package lists may be absent or old.
        if ! { apt-get update && smg_apt_install "${missing[@]}"; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -f "$log"
            smg_die "apt-get could not install ${missing[*]}"
        fi
    fi
    rm -f "$log"
}

smg_apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null
}

# Generates configure when it is absent or older than what it is made from.
smg_autoreconf() {
    local input stale=no
    cd "$SMG_TOP" || return 1
    if [ -f configure ] && [ -f Makefile.in ] && [ -f config.h.in ] && [ -f build-aux/ltmain.sh ]; then
        for input in configure.ac Makefile.am m4/smg_*.m4 */local.mk tests/fuzz/local.mk; do
            [ ! "$input" -nt configure ] || stale=yes
        done
    else
        stale=yes
    fi
    [ "$stale" = no ] || { autoreconf -fi && touch configure; }
}

# smg_configure FOLDER ARGUMENT...: configures out of tree; a folder that was configured with other arguments starts from nothing.
smg_configure() {
    local folder=$1
    shift
    cd "$SMG_TOP" || return 1
    if [ -f "$folder/Makefile" ] && [ "$(cat "$folder/.smg-arguments" 2>/dev/null)" = "$*" ] && [ ! configure -nt "$folder/config.status" ]; then
        return 0
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    (cd "$folder" && ../configure "$@") || return 1
    echo "$*" >"$folder/.smg-arguments"
}

# smg_make FOLDER ARGUMENT...
smg_make() {
    local folder=$1
    shift
    make -C "$SMG_TOP/$folder" -j"$SMG_JOBS" --no-print-directory "$@"
}

# smg_quiet LOG NAME COMMAND...: runs the command with its output in LOG, says name and time; on failure shows the end of LOG.
smg_quiet() {
    local log=$1 name=$2 start=$EPOCHREALTIME rc=0
    shift 2
    printf '%-44s ' "$name"
    mkdir -p "$(dirname "$log")"
    ("$@") >"$log" 2>&1 </dev/null || rc=$?
    if [ "$rc" -eq 0 ]; then
        echo "ok, $(smg_seconds_since "$start")"
    else
        echo "FAILED with status $rc, $(smg_seconds_since "$start"); the end of ${log#"$SMG_TOP"/}:"
        tail -n 40 "$log"
    fi
    return "$rc"
}

# smg_loud NAME COMMAND...: the same with the output shown.
smg_loud() {
    local name=$1 start=$EPOCHREALTIME rc=0
    shift
    echo "== $name"
    "$@" </dev/null || rc=$?
    if [ "$rc" -eq 0 ]; then
        echo "== $name: ok, $(smg_seconds_since "$start")"
    else
        echo "== $name: FAILED with status $rc, $(smg_seconds_since "$start")"
    fi
    return "$rc"
}
