sed "1a // build: -Wl,--defsym=begin_signature=0x80008000 -Wl,--defsym=end_signature=0x80008008" firmware/hello.c >"$tmp/x.c"; firmware/build.sh "$tmp" "$tmp/x.c"
"$TAPEOUT" run "$CHIP" "$tmp/x.elf" --max-steps 20 --signature "$tmp/s"; s=$?; [ ! -e "$tmp/s" ] && exit $s
