"$TAPEOUT" run "$CHIP" --batch "$tmp/none"
