"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/c.chip" && : >"$tmp/t" && "$TAPEOUT" check "$tmp/c.chip" "$tmp/t"
