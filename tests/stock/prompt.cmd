# Loaded through tokens, a program prints the same; the tokens are many words each.
"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --prompt | cmp - tests/firmware/hello.out || exit 3
[ "$("$TAPEOUT" prompt "$CHIP" "$WORK/firmware/hello.elf" | wc -l)" -lt 2000 ]
