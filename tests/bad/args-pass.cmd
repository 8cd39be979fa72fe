"$TAPEOUT" dump "$SPEC" --after nothing
