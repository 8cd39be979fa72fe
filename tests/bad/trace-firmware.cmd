"$TAPEOUT" check "$CHIP" "$tmp/none.elf" "$tmp/none"
