# A trace that a run wrote is what the chip says, for programs and for every machine, all tokens at once and one at a time; inputs are fed. Its
# netlist says the same.
for p in hello sort; do
    "$TAPEOUT" run "$CHIP" "$WORK/firmware/$p.elf" --trace "$tmp/$p" >"$tmp/o" || exit 1
    "$TAPEOUT" check "$CHIP" "$WORK/firmware/$p.elf" "$tmp/$p" --stats 2>"$tmp/e" || { cat "$tmp/e"; exit 1; }
    grep -q "^tokens: $(($(wc -l <"$tmp/$p") - 1))$" "$tmp/e" && grep -q "^path: 512 tokens at a time$" "$tmp/e" || { cat "$tmp/e"; exit 1; }
done
for f in tests/machines/*.ckt; do
    in=${f%.ckt}.in; [ -f "$in" ] || in=/dev/null
    "$TAPEOUT" build -q "$f" -o "$tmp/m.chip" || exit 1
    "$TAPEOUT" run "$tmp/m.chip" --trace "$tmp/t" <"$in" >"$tmp/o" 2>"$tmp/e"
    for b in planes sparse; do "$TAPEOUT" check "$tmp/m.chip" "$tmp/t" --backend $b >"$tmp/a" || { echo "$f $b"; exit 1; }; done
    "$TAPEOUT" check "$tmp/m.chip" --netlist <"$in" >"$tmp/b" && cmp "$tmp/a" "$tmp/b" || { echo "$f --netlist"; exit 1; }
done
