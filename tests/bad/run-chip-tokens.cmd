"$TAPEOUT" run "$CHIP" --max-tokens 3
