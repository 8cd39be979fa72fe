"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" "$WORK/firmware/hello.elf"
