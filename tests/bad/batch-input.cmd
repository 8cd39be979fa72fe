printf "%s\t\t%s\n" "$WORK/firmware/hello.elf" "$tmp/nothing" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l"
