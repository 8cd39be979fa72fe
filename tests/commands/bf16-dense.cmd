# The stock layer's own arithmetic in bfloat16, free and in a public geometry, against the netlist.
for shape in native qwen3.5-0.8b; do
    for machine in count stack; do
        "$TAPEOUT" build -q tests/machines/$machine.ckt -t $shape --dtype bf16 -o "$tmp/b.chip" || exit 1
        "$TAPEOUT" run "$tmp/b.chip" --backend dense --check >"$tmp/o"
        cmp "$tmp/o" tests/machines/$machine.out || exit 1
    done
done
