"$TAPEOUT" run "$tmp/none.chip" "$WORK/firmware/hello.elf"
