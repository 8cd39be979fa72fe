"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
echo "{\"eos_token_id\": \"</s>\"}" >"$tmp/hf/generation_config.json"
"$TAPEOUT" run "$tmp/hf" "$tmp/ids" --max-tokens 20
