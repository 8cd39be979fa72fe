"$TAPEOUT" graft "$tmp" "$CHIP"
