printf "%s\to\n%s\to\n" "$WORK/firmware/hello.elf" "$WORK/firmware/hello.elf" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l"
