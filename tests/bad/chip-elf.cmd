"$TAPEOUT" run "$WORK/firmware/hello.elf" "$WORK/firmware/hello.elf"
