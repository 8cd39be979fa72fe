"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 9
f=$tmp/hf/model.safetensors n=$(od -An -tu8 -N8 "$tmp/hf/model.safetensors") # a weight of the last norm
at=$(head -c $((n + 8)) "$f" | grep -ao "\"model.norm.weight\":{[^}]*data_offsets\":\[[0-9]*" | grep -o "[0-9]*$") || exit 9
printf "\0\0\300\177" | dd of="$f" bs=1 seek=$((8 + n + at + 4 * 7)) conv=notrunc 2>/dev/null
"$TAPEOUT" run "$tmp/hf" "$tmp/ids" --max-tokens 20
