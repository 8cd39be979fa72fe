# Without the proof the same bytes are written; what the proof refuses is then the user's own risk.
"$TAPEOUT" build "$SPEC" --no-prove -o "$tmp/a.chip" | grep -q "^proof: none was asked for$" || exit 1
cmp "$tmp/a.chip" "$CHIP" || exit 1
"$TAPEOUT" build -q tests/machines/clock.ckt -t qwen3.5-4b --dtype f32 --no-prove -o "$tmp/c.chip" || exit 1
"$TAPEOUT" prove "$tmp/c.chip" >"$tmp/proof" && exit 1
grep -q "^verdict: REFUSED: clock.ckt:5: layer 1: " "$tmp/proof"
