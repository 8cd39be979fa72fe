"$TAPEOUT" build tests/machines/count.ckt --base "$tmp" -t native -o "$tmp/x.chip"
