# A small vocabulary: the payloads of fields share it, within the limit; checked runs and prompts work as with any other; too small a
# limit is refused.
"$TAPEOUT" build "$SPEC" --vocab 16384 --no-prove -o "$tmp/v.chip" >"$tmp/report" || exit 1
rows=$(sed -n 's/^vocabulary: \([0-9]*\) tokens.*/\1/p' "$tmp/report")
[ "$rows" -le 16384 ] && [ "$rows" -gt 8192 ] || exit 1
"$TAPEOUT" run "$tmp/v.chip" "$WORK/firmware/queens.elf" --check >"$tmp/a" || exit 1
"$TAPEOUT" run "$tmp/v.chip" "$WORK/firmware/queens.elf" --prompt >"$tmp/b" || exit 1
cmp "$tmp/a" "$tmp/b" || exit 1
"$TAPEOUT" build -q cpu-spec/rv32im_machine.ckt --vocab 16384 --no-prove -o "$tmp/m.chip" || exit 1 # its small registers share two fields
"$TAPEOUT" run "$tmp/m.chip" "$WORK/firmware/hello.elf" --check >"$tmp/a" && cmp "$tmp/a" tests/firmware/hello.out || exit 1
"$TAPEOUT" build "$SPEC" --vocab 1000 --no-prove -o "$tmp/w.chip" 2>"$tmp/err" && exit 1
[ ! -e "$tmp/w.chip" ] && grep -q "the machine needs a vocabulary of [0-9]* tokens" "$tmp/err"
