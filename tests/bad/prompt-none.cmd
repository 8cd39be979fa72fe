"$TAPEOUT" prompt "$CHIP" README.md
