"$TAPEOUT" run "$CHIP" --load-state README.md
