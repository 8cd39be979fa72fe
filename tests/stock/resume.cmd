# A run cut in two by a state file, in either back end, prints what a whole run prints.
for backend in sparse dense; do
    "$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --max-steps 300 --save-state "$tmp/half" >"$tmp/first" 2>"$tmp/why"; [ $? = 1 ] || exit 3
    "$TAPEOUT" run "$CHIP" --load-state "$tmp/half" --backend $backend --max-steps 40 --save-state "$tmp/more" >>"$tmp/first" 2>"$tmp/why"; [ $? = 1 ] || exit 4
    "$TAPEOUT" run "$CHIP" --load-state "$tmp/more" >>"$tmp/first" || exit 5
    cmp "$tmp/first" tests/firmware/hello.out || exit 6
done
