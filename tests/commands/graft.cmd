# A machine in front of another one's export: the folder is complete, text's ids stay, and the same inputs give the same bytes.
"$TAPEOUT" build tests/hf/mix.ckt --vocab 4096 -q -o "$tmp/base.chip" && "$TAPEOUT" export "$tmp/base.chip" --hf "$tmp/base" || exit 1
"$TAPEOUT" build tests/machines/count.ckt -q --base "$tmp/base" -o "$tmp/count.chip" || exit 1
"$TAPEOUT" graft "$tmp/base" "$tmp/count.chip" -o "$tmp/both" --shard 3000000 >"$tmp/o" || exit 1
for f in config.json generation_config.json tokenizer.json model.safetensors.index.json; do
    [ -s "$tmp/both/$f" ] || { echo "no $f"; exit 1; }
done
grep -q '"first_token": '"$(sed -n 's/.*"vocab_size": \([0-9]*\).*/\1/p' "$tmp/base/config.json")" "$tmp/both/config.json" || { echo "base tokens lost their ids"; exit 1; }
"$TAPEOUT" graft "$tmp/base" "$tmp/count.chip" -q -o "$tmp/again" --shard 3000000 && diff -r "$tmp/both" "$tmp/again"
