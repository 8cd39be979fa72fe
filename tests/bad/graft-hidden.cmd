"$TAPEOUT" build tests/machines/count.ckt --hidden 512 -o "$tmp/x.chip"
