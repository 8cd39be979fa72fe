# An export is a checkpoint that our own runtime runs, too: in each family, in one file and in several, in float32, bfloat16 and the shape of a public model, the
# folder says the tokens of the chip.
expected() { # CHIP STEPS: the ids of its trace, by its own dense back end
    declare -A base
    local id name rest n=0
    "$TAPEOUT" run "$1" --backend dense --max-steps $2 --trace "$tmp/trace" >/dev/null 2>&1 </dev/null
    while read -r id name rest; do [[ ! $id =~ ^[0-9]+$ || -z $rest || $name = load ]] || base[$name]=${base[$name]:-$id}; done < <("$TAPEOUT" info "$1" | sed -n '/^tokens/,/^state/p')
    while read -r name rest; do [ $((n++)) = 0 ] || echo $((base[$name] + 16#$rest)); done <"$tmp/trace"
}
same() { # CHIP STEPS EXPORT-OPTION...
    local chip=$1 steps=$2; shift 2
    expected "$chip" $steps >"$tmp/want"
    "$TAPEOUT" export "$chip" --hf "$tmp/hf" "$@" >/dev/null && "$TAPEOUT" prompt "$chip" >"$tmp/ids" || exit 3
    "$TAPEOUT" run "$tmp/hf" "$tmp/ids" --max-tokens "$(wc -l <"$tmp/want")" >"$tmp/got" || exit 4
    [ -s "$tmp/want" ] && cmp "$tmp/want" "$tmp/got" || { echo "$chip $*"; exit 5; }
}
build() { "$TAPEOUT" build -q "$@" --no-prove -o "$tmp/chip" || exit 6; }
for dtype in f32 bf16; do
    build tests/hf/mix.ckt --vocab 4096 --dtype $dtype
    for family in qwen3_5 qwen3_next qwen3_5_moe olmo_hybrid; do same "$tmp/chip" 60 --family $family; done
    same "$tmp/chip" 60 --shard 1000000
done
build tests/machines/count.ckt -t qwen3.5-0.8b --vocab 4096 && same "$tmp/chip" 4
# A machine that ends: the last token is one that ends generation, and nothing is said after it. Ids from stdin.
build tests/machines/count.ckt && same "$tmp/chip" 100
"$TAPEOUT" run "$tmp/hf" "$tmp/ids" --backend cuda-host-dense | cmp - "$tmp/want" || exit 8
"$TAPEOUT" run "$tmp/hf" - --stats <"$tmp/ids" 2>"$tmp/stats" | cmp - "$tmp/want" || exit 7
grep -q "^tokens: $(wc -l <"$tmp/want")$" "$tmp/stats"
