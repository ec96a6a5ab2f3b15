#!/bin/sh
# copy-tree.sh FROM TO PATTERN...: copies the files of folder FROM whose names match a pattern to TO, sub-folders kept, mode 644
# (755 where the file is executable). Hidden files, build products and empty folders are left out. A missing FROM is an empty one.
set -eu

from=$1
to=$2
shift 2
[ -d "$from" ] || exit 0
for pattern in "$@"; do
    (cd "$from" && find . -name '.?*' -prune -o -type f -name "$pattern" \
        ! -name '*.o' ! -name '*.lo' ! -name '*.la' ! -name '*.log' ! -name '*.trs' ! -name '*~' -print)
done | LC_ALL=C sort -u | while IFS= read -r file; do
    mkdir -p "$to/$(dirname "$file")"
    if [ -x "$from/$file" ]; then mode=755; else mode=644; fi
    install -m "$mode" "$from/$file" "$to/$file"
done
