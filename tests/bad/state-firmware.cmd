"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --load-state README.md
