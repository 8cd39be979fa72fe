# Machines without firmware in a batch, ten of each, every other with an input: as alone. A chip that planes cannot hold runs one after the other.
for f in tests/machines/*.ckt; do
    "$TAPEOUT" build -q "$f" -o "$tmp/m.chip" || exit 1
    "$TAPEOUT" run "$tmp/m.chip" --stats </dev/null >"$tmp/alone" 2>"$tmp/e"
    want=$(printf '%s\t%s\t%s' $? "$(sed -n 's/^steps: //p' "$tmp/e")" "$(sed -n 's/^tokens: //p' "$tmp/e")")
    in=${f%.ckt}.in; [ -f "$in" ] || in=/dev/null
    "$TAPEOUT" run "$tmp/m.chip" --stats <"$in" >"$tmp/fed" 2>"$tmp/e"
    want="$want
$(printf '%s\t%s\t%s' $? "$(sed -n 's/^steps: //p' "$tmp/e")" "$(sed -n 's/^tokens: //p' "$tmp/e")")"
    for i in $(seq 5); do printf -- '-\t%s\n-\t%s\t%s\n' "$tmp/out$i" "$tmp/in$i" "$in"; done >"$tmp/list"
    "$TAPEOUT" run "$tmp/m.chip" --batch "$tmp/list" >"$tmp/got" 2>"$tmp/e"
    cut -f1-3 "$tmp/got" | diff <(for i in $(seq 5); do echo "$want"; done) - || { echo "$f"; exit 1; }
    for i in $(seq 5); do cmp "$tmp/alone" "$tmp/out$i" && cmp "$tmp/fed" "$tmp/in$i" || { echo "$f"; exit 1; }; done
done
