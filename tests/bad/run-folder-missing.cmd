"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
sed -i "s/model.layers.1.mlp.up_proj/model.layers.1.mlp.up_proi/" "$tmp/hf/model.safetensors"
"$TAPEOUT" run "$tmp/hf" "$tmp/ids"
