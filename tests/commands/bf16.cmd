# A chip in bfloat16 runs a program, too.
"$TAPEOUT" build "$SPEC" --dtype bf16 -o "$tmp/bf16.chip" && "$TAPEOUT" run "$tmp/bf16.chip" "$WORK/firmware/hello.elf" --check | cmp - tests/firmware/hello.out
