"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --backend abacus
