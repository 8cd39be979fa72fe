"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/base" || exit 9
sed -i "s/\"hidden_size\": [0-9]*/\"hidden_size\": 255/" "$tmp/base/config.json"
"$TAPEOUT" graft "$tmp/base" "$tmp/count.chip" -o "$tmp/out"
