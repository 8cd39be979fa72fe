# 128 KiB: a program whose stack lies at their end faults on the ordinary chip and runs on the larger one.
mkdir "$tmp/elf" && sed "1a // build: -DIO_POLL -Wl,--defsym=__ram_size=128K" firmware/hello.c >"$tmp/large.c" && firmware/build.sh "$tmp/elf" "$tmp/large.c" &&
    "$TAPEOUT" build "$SPEC" -D RAM=128KiB -o "$tmp/large.chip" &&
    "$TAPEOUT" run "$tmp/large.chip" "$tmp/elf/large.elf" --check | cmp - tests/firmware/hello.out &&
    { "$TAPEOUT" run "$CHIP" "$tmp/elf/large.elf" && exit 1; "$TAPEOUT" run "$CHIP" "$tmp/elf/large.elf"; }
