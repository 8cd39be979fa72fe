"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --fault l2-mean
