#!/bin/bash
# Every C file of a room is in the room's local.mk (a file nobody builds is dead), and each header can be read alone.
set -euo pipefail

cd "${top_srcdir:-$(dirname "$0")/..}"
bad=0
n=0
for file in $(find core traces sim emu kernels experiments cli tests -name '.?*' -prune -o -type f -name '*.[ch]' -print | LC_ALL=C sort); do
    room=${file%%/*}
    # Headers of tests are taken as a folder.
    case $file in tests/*.h) continue ;; esac
    n=$((n + 1))
    # A test program is listed by its name, without .c.
    name=$file
    case $file in tests/test_*.c | tests/bench_*.c | tests/fuzz/fuzz_*.c) name=${file%.c} ;; esac
    list=$room/local.mk
    case $file in tests/fuzz/*) list=tests/fuzz/local.mk ;; esac
    if ! grep -qE "(^|[[:space:]])${name//./\\.}([[:space:]]|\\\\|$)" "$list"; then
        echo "$file: not in $list"
        bad=$((bad + 1))
    fi
done

# Headers of core are read as strict C11, the others with GNU interfaces.
headers=0
while IFS= read -r header; do
    headers=$((headers + 1))
    gnu=-D_GNU_SOURCE=
    case $header in core/*) gnu= ;; esac
    if ! echo "#include \"$header\"" | ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror $gnu ${SMG_HEADER_CPPFLAGS:-} \
        -I. -fsyntax-only -x c -; then
        echo "$header: cannot be included alone"
        bad=$((bad + 1))
    fi
done < <(find core traces sim emu kernels experiments cli tests -name '.?*' -prune -o -type f -name '*.h' -print | LC_ALL=C sort)

[ "$bad" -eq 0 ] || exit 1
echo "$n files are all listed, $headers headers can be read alone"
