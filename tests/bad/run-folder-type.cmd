"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
"$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" --family gated_deltanet >/dev/null
"$TAPEOUT" run "$tmp/hf" "$tmp/ids"
