# A batch of mixed programs: status, steps, tokens and output of each as when it runs alone; also more machines than a word has lanes, and by one
# machine after the other. A fault and an exit status other than 0 make the whole fail.
firmware/build.sh "$tmp" tests/isa/fault-ebreak.S tests/isa/add.S 2>/dev/null || { ls tests/isa | head -3; exit 1; }
for i in $(seq 12); do
    for f in "$WORK"/firmware/{hello,sort,printf,strings,matrix}.elf "$tmp"/*.elf; do echo "$f"; done
done >"$tmp/many"
for f in "$WORK"/firmware/{hello,sort,printf,strings,matrix}.elf "$tmp"/*.elf; do
    printf '%s\t%s\n' "$f" "$tmp/$(basename "$f").batch" >>"$tmp/list"
    "$TAPEOUT" run "$CHIP" "$f" --max-steps 600 --stats >"$tmp/$(basename "$f").alone" 2>"$tmp/e"
    printf '%s\t%s\t%s\t%s\n' $? "$(sed -n 's/^steps: //p' "$tmp/e")" "$(sed -n 's/^tokens: //p' "$tmp/e")" "$(stat -c %s "$tmp/$(basename "$f").alone")" >>"$tmp/want"
done
for b in planes sparse; do
    "$TAPEOUT" run "$CHIP" --batch "$tmp/list" --max-steps 600 --stats --backend $b >"$tmp/got" 2>"$tmp/e" && { echo "a failing machine passes"; exit 1; }
    cut -f1-4 "$tmp/got" | diff "$tmp/want" - || { cat "$tmp/e"; exit 1; }
    while IFS="	" read -r f out; do cmp "$tmp/$(basename "$f").alone" "$out" || exit 1; rm "$out"; done <"$tmp/list"
    if [ $b = planes ] && grep -q "^path" "$tmp/e"; then cat "$tmp/e"; exit 1; fi
done
"$TAPEOUT" run "$CHIP" --batch "$tmp/many" --max-steps 600 --stats >"$tmp/got" 2>"$tmp/e"
if grep -q "^path" "$tmp/e"; then cat "$tmp/e"; exit 1; fi
cut -f1-4 "$tmp/got" | diff <(for i in $(seq 12); do cat "$tmp/want"; done) -
