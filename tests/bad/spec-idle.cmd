echo "machine m { step { } }" >"$tmp/m.ckt"; "$TAPEOUT" build "$tmp/m.ckt" -o "$tmp/chip"
