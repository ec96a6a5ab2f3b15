#!/bin/bash
# Every C, C++ and CUDA file of a room is in the room's local.mk (a file nobody builds is dead); each header can be read alone.
set -euo pipefail

cd "${top_srcdir:-$(dirname "$0")/..}"
bad=0
n=0
for file in $(find core traces sim emu kernels experiments cli tests -name '.?*' -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print | LC_ALL=C sort); do
    room=${file%%/*}
    # Headers of tests are taken as a folder.
    case $file in tests/*.h) continue ;; esac
    n=$((n + 1))
    # A test program is listed by its name, without .c.
    name=$file
    case $file in
    tests/test_kernels_cuda.c) ;; # built for the CPU runner only
    tests/test_*.c | tests/bench_*.c | tests/fuzz/fuzz_*.c) name=${file%.c} ;;
    esac
    list=$room/local.mk
    case $file in tests/fuzz/*) list=tests/fuzz/local.mk ;; esac
    if ! grep -qE "(^|[[:space:]])${name//./\\.}([[:space:]]|\\\\|$)" "$list"; then
        echo "$file: not in $list"
        bad=$((bad + 1))
    fi
done

# Headers of core are read as strict C11, the others with GNU interfaces; those of the CPU runner and .cuh files as the C++ that
# a .cu file is for it. What needs CUDA's headers is left out where there are none.
headers=0
no_cuda=0
read_header() {
    local gnu=-D_GNU_SOURCE=
    case $1 in
    *.cuh | kernels/runner/cuda_cpu.h | kernels/runner/cuda_cpu_internal.h)
        ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-unused-function ${CUDA_CPPFLAGS:-} -I. \
            -include kernels/runner/cuda_cpu.h -fsyntax-only -x c++ -
        ;;
    *)
        case $1 in core/*) gnu= ;; esac
        ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror $gnu ${SMG_HEADER_CPPFLAGS:-} -I. \
            -fsyntax-only -x c -
        ;;
    esac <<<"#include \"$1\""
}
while IFS= read -r header; do
    if [ "${SMG_CUDA_RUNNER:-yes}" = no ] &&
        { [[ $header == *.cuh ]] || grep -qE '#include (<cuda|"kernels/runner/cuda_cpu.h)' "$header"; }; then
        no_cuda=$((no_cuda + 1))
        continue
    fi
    headers=$((headers + 1))
    if ! read_header "$header"; then
        echo "$header: cannot be included alone"
        bad=$((bad + 1))
    fi
done < <(find core traces sim emu kernels experiments cli tests -name '.?*' -prune -o -type f \
    \( -name '*.h' -o -name '*.cuh' \) -print | LC_ALL=C sort)

# Which tests the thread sanitizer runs (SMG_THREAD_TESTS) hangs on that.
for file in $(grep -rlE 'pthread_create|thrd_create|std::j?thread' --include='*.[ch]' core traces sim emu kernels experiments cli); do
    case $file in
    kernels/threads.c | emu/harness_end.c | kernels/runner/*) continue ;;
    esac
    echo "$file: starts a thread; is it among what SMG_THREAD_TESTS run?"
    bad=$((bad + 1))
done

[ "$bad" -eq 0 ] || exit 1
echo "$n files are all listed, $headers headers can be read alone, $no_cuda left out for want of CUDA's"
