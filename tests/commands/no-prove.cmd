# Without the proof the same bytes are written. `prove` refuses a chip whose numbers are not exact, with the line that they come from.
"$TAPEOUT" build "$SPEC" --no-prove -o "$tmp/a.chip" | grep -q "^proof: none was asked for$" || exit 1
cmp "$tmp/a.chip" "$CHIP" || exit 1
"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/c.chip" || exit 1
LC_ALL=C sed 's/\\"fill\\":64\.0/\\"fill\\":65.0/' "$tmp/c.chip" >"$tmp/gain.chip" # the gain of the norm over what is read
"$TAPEOUT" prove "$tmp/gain.chip" >"$tmp/proof" && exit 1
grep -q "^verdict: REFUSED: count.ckt:3: layer 0: value head 0 lane 0: 1 reads as 1.015625$" "$tmp/proof"
