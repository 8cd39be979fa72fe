"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --backend plan --signature "$tmp/s"
