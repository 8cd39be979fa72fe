"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
echo "1 2
3 100000000" >"$tmp/ids"
"$TAPEOUT" run "$tmp/hf" "$tmp/ids"
