"$TAPEOUT" check "$CHIP" "$tmp/none.elf" --netlist --stats
