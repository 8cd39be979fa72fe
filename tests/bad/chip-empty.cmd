: >"$tmp/x.chip"; "$TAPEOUT" run "$tmp/x.chip" "$WORK/firmware/hello.elf"
