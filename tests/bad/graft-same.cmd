"$TAPEOUT" graft "$tmp" "$CHIP" -o "$tmp/."
