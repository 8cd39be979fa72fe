# --signature writes the words between two symbols, and tohost may lie anywhere in the memory: here at its very end.
sed "1a // build: -Wl,--defsym=begin_signature=0x80000000 -Wl,--defsym=end_signature=0x80000008" firmware/hello.c >"$tmp/x.c" && firmware/build.sh "$tmp" "$tmp/x.c" || exit 1
"$TAPEOUT" run "$CHIP" "$tmp/x.elf" --signature "$tmp/s" && [ "$(wc -l <"$tmp/s")" = 2 ] && grep -qvE '^[0-9a-f]{8}$' "$tmp/s" && exit 1
printf '.globl _start\n_start: li a0, 0x8000fff8\nli a1, 15\nsw a1, 0(a0)\nj .\n.globl tohost\n.set tohost, 0x8000fff8\n' >"$tmp/t.S" && firmware/build.sh "$tmp" "$tmp/t.S" || exit 1
"$TAPEOUT" run "$CHIP" "$tmp/t.elf" --check; [ $? = 7 ]
