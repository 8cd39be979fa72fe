"$TAPEOUT" build "$SPEC" -t nowhere -o "$tmp/chip"
