"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
"$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" --family qwen3_5_moe >/dev/null
sed -i "s/\"num_experts\": 2/\"num_experts\": 128/" "$tmp/hf/config.json"
"$TAPEOUT" run "$tmp/hf" "$tmp/ids"
