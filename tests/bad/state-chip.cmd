"$TAPEOUT" run "$CHIP" --load-state "$CHIP"
