#!/bin/bash
# nvcc takes every CUDA source for every architecture without a warning, and no kernel spills registers or uses local memory.
# Registers, shared and constant bytes of each kernel are held against kernels/resources.txt: exactly with the nvcc that the file
# names, else a difference is shown and passes. nvcc_gates.sh --write: writes that file anew (make cuda-resources).
set -uo pipefail

archs="75 80 89 90 100"
table=$top_srcdir/kernels/resources.txt
folder=$top_builddir/cuda-check/nvcc
jobs=$(nproc 2>/dev/null || echo 2)

if [ -z "${NVCC:-}" ]; then
    echo "skip: no nvcc"
    exit 77
fi
if [ -n "${SMG_SAN_CFLAGS:-}" ] && [ "${1:-}" != --write ]; then
    echo "builds in its own ways, whatever the configuration: left to the build without sanitizers"
    exit 0
fi
version=$("$NVCC" --version | sed -n 's/.*release.*, V\([0-9.]*\).*/\1/p')
for arch in $archs; do
    gencode="${gencode:-} -gencode arch=compute_$arch,code=sm_$arch"
done
# Until there are others, the selftest's.
sources=${SMG_CUDA_SOURCES:-kernels/runner/selftest/selftest.cu}
rm -rf "$folder"
mkdir -p "$folder"

# compile SOURCE: what nvcc says goes to a log; status of nvcc.
compile() {
    local name=${1//\//_}
    # shellcheck disable=SC2086
    "$NVCC" -std=c++17 -O2 $gencode -I"$top_srcdir" -I"$top_builddir" -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror \
        -Xcompiler -ffp-contract=off,-fno-exceptions,-fno-rtti -Xptxas -v,-warn-spills,-warn-lmem-usage,-Werror \
        -c -o "$folder/$name.o" "$top_srcdir/$1" >"$folder/$name.log" 2>&1
}

# resources SOURCE: lines "kernel arch registers/shared/constant" from its log. ptxas names a kernel, then what it uses.
resources() {
    awk -v file="${1##*/}" '
        /Compiling entry function/ { split($0, q, "\047"); kernel = q[2]; arch = q[4] }
        /Used [0-9]+ registers/ {
            shared = constant = 0
            registers = $0; sub(/.*Used /, "", registers); sub(/ .*/, "", registers)
            if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH) + 0
            rest = $0
            while (match(rest, /[0-9]+ bytes cmem/)) {
                constant += substr(rest, RSTART, RLENGTH) + 0
                rest = substr(rest, RSTART + RLENGTH)
            }
            print kernel, arch, registers "/" shared "/" constant
        }' "$folder/${1//\//_}.log" | c++filt | sed -e 's/^void //' -e 's/(.*) sm_/ sm_/' | sed "s|^|${1##*/}:|"
}

make_table() {
    echo "# nvcc $version. Registers/shared bytes/constant bytes of each kernel. Written by make cuda-resources."
    for source in $sources; do
        resources "$source"
    done | awk -v archs="$archs" '
        {
            key = $1; for (i = 2; i < NF - 1; i++) key = key "_" $i
            cell[key, $(NF - 1)] = $NF
            if (!(key in seen)) { seen[key] = 1; keys[++n] = key }
        }
        END {
            m = split(archs, a, " ")
            line = sprintf("%-44s", "# kernel"); for (i = 1; i <= m; i++) line = line sprintf(" %14s", "sm_" a[i]); print line
            for (k = 1; k <= n; k++) {
                line = sprintf("%-44s", keys[k])
                for (i = 1; i <= m; i++) {
                    c = keys[k] SUBSEP "sm_" a[i]
                    line = line sprintf(" %14s", c in cell ? cell[c] : "-")
                }
                print line
            }
        }' | { read -r head && echo "$head" && LC_ALL=C sort; }
}

failed=0
# The gate itself: a kernel that spills and one that uses local memory are refused, and for that reason.
for bad in spill:"Registers are spilled" selftest_stack:"Local memory used"; do
    source=kernels/runner/selftest/${bad%%:*}.cu
    if compile "$source" || ! grep -q "${bad#*:}" "$folder/${source//\//_}.log"; then
        echo "$source: not refused with '${bad#*:}':"
        cat "$folder/${source//\//_}.log"
        failed=1
    fi
done

for source in $sources; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    { compile "$source" || touch "$folder/${source//\//_}.failed"; } </dev/null &
done
wait
for source in $sources; do
    if [ -e "$folder/${source//\//_}.failed" ]; then
        echo "$source:"
        grep -v 'ptxas info' "$folder/${source//\//_}.log"
        failed=1
    fi
done
[ "$failed" -eq 0 ] || exit 1

make_table >"$folder/resources.txt"
n=$(grep -vc '^#' "$folder/resources.txt")
if [ "$n" -eq 0 ]; then
    echo "no kernel found in what nvcc said"
    exit 1
fi
if [ "${1:-}" = --write ]; then
    cp "$folder/resources.txt" "$table"
elif ! diff "$table" "$folder/resources.txt"; then
    if [ "$(head -n 1 "$table" 2>/dev/null)" = "$(head -n 1 "$folder/resources.txt")" ]; then
        echo "kernels/resources.txt differs; if it should, make cuda-resources and review the change"
        exit 1
    fi
    echo "kernels/resources.txt is of another nvcc: the difference is for information"
fi
echo "$n kernels for $(wc -w <<<"$archs") architectures: no warnings, no spills, no local memory (nvcc $version)"
