#!/bin/bash
# The core library calls nothing outside tests/nm-allow.txt: no printing, no files, no clock.
set -euo pipefail

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
top_builddir=${top_builddir:-$PWD}
nm=${NM:-nm}
archive=$top_builddir/.libs/libsmgcore.a
allow=$top_srcdir/tests/nm-allow.txt

if [ ! -f "$archive" ]; then
    echo "$archive: not built"
    exit 1
fi
defined=$("$nm" --defined-only -g -f posix "$archive" | awk 'NF >= 2 { print $1 }' | sort -u)
undefined=$("$nm" -u -f posix "$archive" | awk 'NF >= 2 { print $1 }' | sort -u)
if [ -z "$defined" ]; then
    echo "$archive: defines nothing"
    exit 1
fi
# What compilers and sanitizers add by themselves does not count; f is meant where a fortified __f_chk stands.
called=$(comm -13 <(echo "$defined") <(echo "$undefined") |
    sed -e '/^__\(asan\|ubsan\|tsan\|lsan\|sanitizer\|gcov\|llvm\)_/d' -e '/^__stack_chk_fail$/d' -e '/^_GLOBAL_OFFSET_TABLE_$/d' \
        -e '/^__tls_get_addr$/d' -e 's/^__\(.*\)_chk$/\1/' | sort -u)
allowed=$(sed 's/#.*//' "$allow" | tr -s ' \t' '\n' | sed '/^$/d' | sort -u)
forbidden=$(comm -23 <(echo "$called") <(echo "$allowed") | sed '/^$/d')
if [ -n "$forbidden" ]; then
    for symbol in $forbidden; do
        echo "core calls $symbol: $("$nm" -A -u "$archive" | awk -v s="$symbol" '$NF == s || $NF == "__" s "_chk" { n = split($1, a, ":"); print a[n - 1] }' |
            sort -u | tr '\n' ' ')"
    done
    exit 1
fi
echo "core calls $(echo "$called" | sed '/^$/d' | wc -l) functions outside itself, all on the list"
