"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/c.chip" && printf "start 0\nstart zz\n" >"$tmp/t" && "$TAPEOUT" check "$tmp/c.chip" "$tmp/t"
