"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --signature "$tmp/s"; s=$?; [ ! -e "$tmp/s" ] && exit $s
