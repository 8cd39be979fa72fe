printf "%s\n%s\n" "$WORK/firmware/hello.elf" "$tmp/none.elf" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l"
