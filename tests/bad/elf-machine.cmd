patched() { cp "$WORK/firmware/hello.elf" "$tmp/x.elf"; printf "$2" | dd of="$tmp/x.elf" bs=1 seek="$1" conv=notrunc status=none; }
patched 18 "\050"
"$TAPEOUT" run "$CHIP" "$tmp/x.elf"
