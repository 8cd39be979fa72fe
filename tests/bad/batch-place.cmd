printf "%s\t/nonexistent/o\n" "$WORK/firmware/hello.elf" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l" --max-steps 5
