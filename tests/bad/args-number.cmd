"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --max-steps many
