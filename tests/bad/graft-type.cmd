"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/base" || exit 9
sed -i "s/qwen3_5_text/llama/" "$tmp/base/config.json"
"$TAPEOUT" graft "$tmp/base" "$tmp/count.chip" -o "$tmp/out"
