# Planes that give up in the middle of a check have judged nothing: it begins again one token at a time, with the same input, and says why.
"$TAPEOUT" build -q --no-prove -t qwen3.5-4b --dtype f32 tests/machines/upper.ckt -o "$tmp/upper.chip" || exit 1
for b in planes sparse; do
    "$TAPEOUT" check "$tmp/upper.chip" --netlist --stats --backend $b <tests/machines/upper.in 2>"$tmp/$b" || { cat "$tmp/$b"; exit 1; }
    grep -E "^(tokens|steps):" "$tmp/$b" >"$tmp/$b.counts"
done
cmp "$tmp/planes.counts" "$tmp/sparse.counts" && grep -q "^steps: 24$" "$tmp/planes.counts" || { cat "$tmp"/*.counts; exit 1; }
grep -q "^path: one token at a time (an address that cannot be)" "$tmp/planes" && grep -q "^path: one token at a time (as asked)" "$tmp/sparse"
