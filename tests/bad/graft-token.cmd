"$TAPEOUT" build tests/hf/mix.ckt --vocab 4096 -q -o "$tmp/base.chip" && "$TAPEOUT" export "$tmp/base.chip" --hf "$tmp/base" || exit 9
"$TAPEOUT" build tests/machines/count.ckt -q --base "$tmp/base" -o "$tmp/for.chip" || exit 8
"$TAPEOUT" graft "$tmp/base" "$tmp/for.chip" -o "$tmp/out" --as 100000000
