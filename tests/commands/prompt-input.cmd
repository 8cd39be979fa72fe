# A machine that was loaded through tokens takes its input as one that was not, also where a counter's token ends the prompt.
for f in tests/machines/*.in; do
    "$TAPEOUT" build -q "${f%.in}.ckt" -o "$tmp/m.chip" || exit 1
    "$TAPEOUT" run "$tmp/m.chip" --trace "$tmp/one" <"$f" >"$tmp/one.out" 2>"$tmp/e"
    want=$?
    "$TAPEOUT" run "$tmp/m.chip" --trace "$tmp/two" --prompt <"$f" >"$tmp/two.out" 2>"$tmp/e"
    [ $? = $want ] && cmp "$tmp/one.out" "$tmp/two.out" && tail -n +2 "$tmp/one" >"$tmp/rest" && tail -n +2 "$tmp/two" | cmp - "$tmp/rest" || { echo "$f"; exit 2; }
done
