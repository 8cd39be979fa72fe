"$TAPEOUT" run "$CHIP" "$tmp/none.elf"
