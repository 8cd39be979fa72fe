"$TAPEOUT" graft "$tmp/none" "$CHIP" -o "$tmp/out"
