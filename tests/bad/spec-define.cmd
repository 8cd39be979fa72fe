"$TAPEOUT" build "$SPEC" -D ROM=4 -o "$tmp/chip"
