# One wrong token, at the beginning, in the middle, at the end, is found at its line; so are tokens too many and a missing input.
"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --trace "$tmp/t" >"$tmp/o" || exit 1
last=$(wc -l <"$tmp/t")
wrong() { # LINE TEXT: found at that line with that text, by both ways
    for b in planes sparse; do
        "$TAPEOUT" check "$CHIP" "$WORK/firmware/hello.elf" "$tmp/w" --backend $b 2>"$tmp/e" && { echo "line $1 passes"; exit 1; }
        grep -q "/w:$1: $2" "$tmp/e" || { echo "line $1, $b:"; cat "$tmp/e"; exit 1; }
    done
}
for n in 2 3 250 $((last - 1)) "$last"; do
    sed "${n}s/.*/x.1 1234/" "$tmp/t" >"$tmp/w"
    wrong "$n" "the trace says x.1 1234, the chip says $(sed -n "${n}p" "$tmp/t")"
done
sed '1s/.*/none 0/' "$tmp/t" >"$tmp/w"; wrong 1 "the trace begins with none 0"
cat "$tmp/t" "$tmp/t" >"$tmp/w"; wrong $((last + 1)) "the trace goes on after the machine has stopped"
sed '100d' "$tmp/t" >"$tmp/w"; wrong 100 "the trace says"
"$TAPEOUT" build -q tests/machines/upper.ckt -o "$tmp/u.chip" && "$TAPEOUT" run "$tmp/u.chip" --trace "$tmp/u" <tests/machines/upper.in >"$tmp/o" 2>"$tmp/e"
sed '2d' "$tmp/u" >"$tmp/w"
"$TAPEOUT" check "$tmp/u.chip" "$tmp/w" 2>"$tmp/e" && exit 1
grep -q "/w:2: the trace says out.more 47 where the host feeds an input" "$tmp/e" || { cat "$tmp/e"; exit 1; }
sed '3s/.*/key 147/' "$tmp/u" >"$tmp/w"
"$TAPEOUT" check "$tmp/u.chip" "$tmp/w" 2>"$tmp/e" && exit 1
grep -q "/w:3: " "$tmp/e" || { cat "$tmp/e"; exit 1; }
# another program's trace is another program's
"$TAPEOUT" check "$CHIP" "$WORK/firmware/sieve.elf" "$tmp/t" 2>"$tmp/e"; [ $? = 1 ]
