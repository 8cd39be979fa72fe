"$TAPEOUT" check "$CHIP" "$WORK/firmware/hello.elf" trace --netlist
