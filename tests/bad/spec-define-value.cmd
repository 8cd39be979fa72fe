"$TAPEOUT" build "$SPEC" -D RAM=big -o "$tmp/chip"
