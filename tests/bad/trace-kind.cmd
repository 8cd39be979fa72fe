"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/c.chip" && printf "start 0\nnonsense 12\n" >"$tmp/t" && "$TAPEOUT" check "$tmp/c.chip" "$tmp/t"
