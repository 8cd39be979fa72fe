# The kit: what it says must follow does, in both executors, and a faulty executor is told what is wrong.
kit=$tmp/kit
"$TAPEOUT" conform --out "$kit" | grep -q "must follow" || exit 1
for f in config.json model.safetensors tokenizer.json generation_config.json prompt.txt expected.txt README.md conform.chip; do
    [ -s "$kit/$f" ] || { echo "no $f"; exit 1; }
done
"$TAPEOUT" prompt "$kit/conform.chip" | cmp - "$kit/prompt.txt" || exit 1
for backend in sparse dense; do
    "$TAPEOUT" run "$kit/conform.chip" --prompt --backend $backend --stats 2>"$tmp/e" | tr -d '\n' >"$tmp/o"
    grep -q '^ABCDEFGHIJKLMNOPQRSTUVWXYZZYXWVUTSRQPONMLKJIHGFEDCB$' <(cat "$tmp/o"; echo) || exit 1
    grep -q "^tokens: $(wc -l <"$kit/expected.txt")$" "$tmp/e" || exit 1
done
while read -r fault message; do
    "$TAPEOUT" run "$kit/conform.chip" --prompt --backend dense --fault $fault >/dev/null 2>"$tmp/e" && exit 1
    grep -q "fault: $message " "$tmp/e" && grep -q "| $message |" "$kit/README.md" || { echo "$fault:"; cat "$tmp/e"; exit 1; }
done <<'TABLE'
state-bf16 the recurrent state is not kept in float32
l2-mean an epsilon is not where it belongs
drop-state the recurrent state was lost between two tokens
drop-conv the convolution's history was lost between two tokens
TABLE
cp -r "$kit" "$tmp/again" && "$TAPEOUT" conform --out "$tmp/again" >/dev/null && diff -r "$kit" "$tmp/again"
