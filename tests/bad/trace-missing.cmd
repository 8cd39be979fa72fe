"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/c.chip" && "$TAPEOUT" check "$tmp/c.chip" "$tmp/none"
