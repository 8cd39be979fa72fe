"$TAPEOUT" export "$CHIP"
