"$TAPEOUT" build tests/bad/none.ckt -o "$tmp/chip"; s=$?; [ -z "$(ls "$tmp" | grep chip)" ] || exit 9; exit $s
