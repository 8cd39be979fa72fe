"$TAPEOUT" check "$CHIP" "$WORK/firmware/hello.elf" trace --max-steps 5
