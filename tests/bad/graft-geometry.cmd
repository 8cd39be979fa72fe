"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/base" || exit 9
"$TAPEOUT" graft "$tmp/base" "$CHIP" -o "$tmp/out"
