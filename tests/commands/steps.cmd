# --max-steps stops where it says, and the trace of a longer run begins with that of a shorter one.
"$TAPEOUT" run "$CHIP" "$WORK/firmware/sieve.elf" --max-steps 50 --trace "$tmp/a"
"$TAPEOUT" run "$CHIP" "$WORK/firmware/sieve.elf" --max-steps 200 --trace "$tmp/b"
[ "$(wc -l <"$tmp/a")" -ge 50 ] && head -n "$(wc -l <"$tmp/a")" "$tmp/b" | cmp - "$tmp/a"
