"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
sed -i "s/\"hidden_act\": \"silu\"/\"hidden_act\": {}/" "$tmp/hf/config.json"
"$TAPEOUT" run "$tmp/hf" "$tmp/ids" --max-tokens 20
