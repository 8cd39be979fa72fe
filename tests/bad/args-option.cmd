"$TAPEOUT" build "$SPEC" --frobnicate
