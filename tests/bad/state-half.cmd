"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --max-steps 9 --save-state "$tmp/s"; head -c 5000 "$tmp/s" >"$tmp/t"; "$TAPEOUT" run "$CHIP" --load-state "$tmp/t"
