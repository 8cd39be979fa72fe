"$TAPEOUT" build tests/bad/none.ckt -o "$tmp/chip"
