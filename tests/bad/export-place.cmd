"$TAPEOUT" export "$CHIP" --hf README.md
