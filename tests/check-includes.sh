#!/bin/bash
# Who may know whom: every #include of a room against the table below. Quoted includes name a room ("core/x.h"); angle
# includes of libraries belong to the rooms that may need them.
set -euo pipefail

cd "${top_srcdir:-$(dirname "$0")/..}"

# room: rooms it may include
declare -A rooms=(
    [core]="core"
    [traces]="traces core"
    [sim]="sim core"
    [emu]="emu core kernels"
    [kernels]="kernels core"
    [experiments]="experiments core traces"
    [cli]="cli core traces sim emu kernels experiments"
    [tests]="tests core traces sim emu kernels experiments cli"
)
# room: libraries it may include (first part of the header's name)
declare -A libraries=(
    [core]=""
    [traces]="jansson yaml gsl"
    [sim]="simgrid xbt"
    [emu]="infiniband rdma cuda"
    [kernels]="cuda gsl"
    [experiments]="jansson yaml gsl"
    [cli]="jansson gsl infiniband"
    [tests]="jansson yaml gsl simgrid xbt infiniband rdma cuda cmocka openblas"
)
# What the core may include of libc: no I/O, no clock, no threads.
core_libc=" stddef.h stdint.h stdbool.h stdlib.h string.h limits.h float.h math.h stdalign.h stdatomic.h inttypes.h "
# The only file that sees SimGrid.
simgrid_file=sim/engine_simgrid.c

library_of() {
    case $1 in
    jansson.h) echo jansson ;;
    yaml.h) echo yaml ;;
    gsl/*) echo gsl ;;
    simgrid/*) echo simgrid ;;
    xbt/*) echo xbt ;;
    infiniband/*) echo infiniband ;;
    rdma/*) echo rdma ;;
    cuda* | cooperative_groups* | nv*) echo cuda ;;
    cmocka.h) echo cmocka ;;
    cblas.h) echo openblas ;;
    *) echo libc ;;
    esac
}

bad=0
n=0
complain() {
    echo "$1:$2: $3"
    bad=$((bad + 1))
}

while IFS= read -r file; do
    room=${file%%/*}
    if [ -z "${rooms[$room]+set}" ]; then
        complain "$file" 1 "C source in a room that holds none"
        continue
    fi
    case $file in
    kernels/*) ;;
    *.cpp | *.cu | *.cuh) complain "$file" 1 "C++ and CUDA are for kernels/ only" ;;
    esac
    while IFS=: read -r line kind header; do
        n=$((n + 1))
        if [ "$kind" = '"' ]; then
            case $header in
            config.h) [ "$room" != core ] || complain "$file" "$line" "core knows no config.h" ;;
            */*)
                case " ${rooms[$room]} " in
                *" ${header%%/*} "*) ;;
                *) complain "$file" "$line" "$room may not include $header" ;;
                esac
                [ -f "$header" ] || complain "$file" "$line" "$header: no such file"
                ;;
            *) complain "$file" "$line" "\"$header\": name the room, as in \"$room/$header\"" ;;
            esac
            continue
        fi
        library=$(library_of "$header")
        if [ "$library" = libc ]; then
            if [ "$room" = core ] && [[ $core_libc != *" $header "* ]]; then
                complain "$file" "$line" "core may not include <$header>"
            fi
        elif [[ " ${libraries[$room]} " != *" $library "* ]]; then
            complain "$file" "$line" "$room may not include <$header>"
        elif [[ $library == simgrid || $library == xbt ]] && [ "$room" = sim ] && [ "$file" != "$simgrid_file" ]; then
            complain "$file" "$line" "only $simgrid_file may include <$header>"
        fi
    done < <(awk 'match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]*/) {
                      text = substr($0, RSTART, RLENGTH); sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
                      print FNR ":" substr(text, 1, 1) ":" substr(text, 2)
                  }' "$file")
done < <(find core traces sim emu kernels experiments plots cli tests -name '.?*' -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print | LC_ALL=C sort)

if [ "$bad" -gt 0 ]; then
    echo "$bad of $n includes break the table"
    exit 1
fi
echo "$n includes follow the table"
