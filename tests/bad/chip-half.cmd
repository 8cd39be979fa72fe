head -c $(($(stat -c %s "$CHIP") / 2)) "$CHIP" >"$tmp/x.chip"; "$TAPEOUT" run "$tmp/x.chip" "$WORK/firmware/hello.elf"
