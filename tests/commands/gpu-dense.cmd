# The GPU's dense executor on the host: tokens as by the sparse back end, every cell at the end as the netlist says, in float32, in bfloat16 and in the shape of a stock
# model; and a state that it saves, with which another goes on.
same() { # CHIP STEPS: both back ends
    "$TAPEOUT" run "$1" --max-steps $2 --trace "$tmp/a" >"$tmp/out.a" 2>/dev/null </dev/null
    "$TAPEOUT" run "$1" --max-steps $2 --trace "$tmp/b" --backend cuda-host-dense --check >"$tmp/out.b" 2>"$tmp/e" </dev/null
    cmp "$tmp/a" "$tmp/b" && cmp "$tmp/out.a" "$tmp/out.b" && ! grep -q "^check" "$tmp/e" || { cat "$tmp/e"; exit 1; }
}
build() { "$TAPEOUT" build -q "$@" --no-prove -o "$tmp/chip" || exit 1; }
build tests/machines/count.ckt && same "$tmp/chip" 30
build tests/machines/count.ckt --dtype bf16 && same "$tmp/chip" 30
build tests/machines/count.ckt -t qwen3.5-0.8b --vocab 4096 && same "$tmp/chip" 3
build tests/machines/bf.ckt && same "$tmp/chip" 8
build tests/machines/fibonacci.ckt
"$TAPEOUT" run "$tmp/chip" --max-steps 4 --backend cuda-host-dense --save-state "$tmp/state" >"$tmp/one" 2>/dev/null
"$TAPEOUT" run "$tmp/chip" --load-state "$tmp/state" --max-steps 20 >"$tmp/two" 2>/dev/null
"$TAPEOUT" run "$tmp/chip" --max-steps 24 2>/dev/null | cmp - <(cat "$tmp/one" "$tmp/two")
