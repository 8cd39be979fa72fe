"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
sed -i "s/\"use_cache\": true/\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0}/" "$tmp/hf/config.json"
"$TAPEOUT" run "$tmp/hf" "$tmp/ids" --max-tokens 20
