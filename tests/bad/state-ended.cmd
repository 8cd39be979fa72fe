"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/c" && "$TAPEOUT" run "$tmp/c" --save-state "$tmp/s" >/dev/null; "$TAPEOUT" run "$tmp/c" --load-state "$tmp/s"
