#!/bin/bash
# smartgen kernels: selectors on synthetic tensors, and the list of kernels. Sizes are small: what the numbers are is for
# test_kernels_quality; here they are there, the same twice, and wrong words end with a message.
. "$top_srcdir/tests/e2e/lib.sh"

small="--heads 2 --kv-heads 1 --head-dim 32 --tokens 200"

# shellcheck disable=SC2086
must "quality" 0 kernels quality $small
[ ! -s "$work/stderr" ] || fail "quality: something on standard error" "$work/stderr"
grep -q "^synthetic tensors, seed 1: 2 query heads, 1 KV heads of 32 elements; 2 requests of 200 tokens" "$work/stdout" ||
    fail "quality does not say what was measured" "$work/stdout"
for selector in oracle infinigen hata hata-untrained quest streamingllm random; do
    [ "$(grep -cE "^$selector +([01]\.[0-9]{3} *){5}$" "$work/stdout")" -eq 2 ] || fail "quality: no two lines of $selector" "$work/stdout"
done
ok "quality: a table of recall and one of mass, labelled synthetic"

# shellcheck disable=SC2086
must "quality again" 0 kernels quality $small --json
cp "$work/stdout" "$work/first.json"
# shellcheck disable=SC2086
must "quality again" 0 kernels quality $small --json --seed=1 --backend=cpu
same "the same twice" "$work/first.json" "$work/stdout"
[ "$(json_value "$work/first.json" synthetic)" = true ] || fail "quality --json: not labelled synthetic" "$work/first.json"
[ "$(json_value "$work/first.json" recall)" = 1.0 ] || fail "quality --json: the oracle does not find itself" "$work/first.json"
[ "$(grep -c '"mass"' "$work/first.json")" -eq 35 ] || fail "quality --json: not 7 selectors at 5 ratios" "$work/first.json"
# shellcheck disable=SC2086
must "another seed" 0 kernels quality $small --json --seed 2
! cmp -s "$work/first.json" "$work/stdout" || fail "another seed gives the same numbers"
ok "quality --json: labelled, reproducible, by seed"

# shellcheck disable=SC2086
must "quality, reference" 0 kernels quality $small --backend reference
grep -q "^kernels: reference, 1 thread; " "$work/stdout" || fail "quality does not name the backend" "$work/stdout"
ok "quality on the reference backend"

must "list" 0 kernels list
for word in reference cpu scores hash_encode page_expand; do
    grep -qE "^$word +[a-zA-Z]" "$work/stdout" || fail "list: no line of $word" "$work/stdout"
done
ok "list: backends and kernels"

# refuses CHECK TEXT ARGUMENT...
refuses() {
    local what=$1 text=$2
    shift 2
    must "$what" 2 kernels "$@"
    [ ! -s "$work/stdout" ] || fail "$what: something on standard output" "$work/stdout"
    one_line "$what"
    says "$what" "$text"
}

refuses "unknown action" "did you mean 'quality'?" qualty
refuses "no action" "missing operand"
refuses "unknown backend" "did you mean 'cpu'?" quality --backend cp
refuses "heads that cannot be shared" "a multiple of --kv-heads, found '8'" quality --kv-heads 3
refuses "odd head_dim" "--head-dim: expected an even number in [6, 256], found '33'" quality --head-dim 33
refuses "too wide" "--head-dim: expected a whole number in [6, 256], found '258'" quality --head-dim 258
refuses "no tokens" "--tokens: expected a whole number in [1, 1048576], found '0'" quality --tokens 0
refuses "no number" "--seed: expected a whole number in [0, 9007199254740992], found '-1'" quality --seed=-1
refuses "half a number" "found '2.5'" quality --heads 2.5
ok "wrong words and sizes: one line, exit 2"

finish
