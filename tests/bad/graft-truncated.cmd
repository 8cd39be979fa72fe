"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/base" || exit 9
truncate -s -4 "$tmp/base/model.safetensors"
"$TAPEOUT" graft "$tmp/base" "$tmp/count.chip" -o "$tmp/out"
