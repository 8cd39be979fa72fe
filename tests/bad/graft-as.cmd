"$TAPEOUT" graft "$tmp" "$CHIP" -o "$tmp/out" --as x
