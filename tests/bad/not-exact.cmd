# An epsilon as large as the squares of the pilots shows in what is read: there is no such chip.
"$TAPEOUT" build tests/machines/count.ckt -t base:0/512/2048/16/32/64/64/8/2/64/12000000/f32 -o "$tmp/c.chip"; status=$?
[ -z "$(ls "$tmp" | grep chip)" ] || { echo "something was left behind" >&2; exit 0; }
exit $status
