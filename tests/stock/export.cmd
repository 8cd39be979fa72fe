# Every family, in one file and in several: the parts say what the whole says, and a folder holds no weights of an earlier export.
"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" || exit 3
for family in qwen3_5 qwen3_next qwen3_5_moe olmo_hybrid; do
    "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" --family $family || exit 4
    [ -f "$tmp/hf/model.safetensors" ] || exit 5
    "$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" --family $family --shard 1000000 || exit 6
    [ ! -f "$tmp/hf/model.safetensors" ] && grep -q '"model.norm.weight": "model-0' "$tmp/hf/model.safetensors.index.json" || exit 7
    ls -A "$tmp/hf" | grep -q tmp && exit 8
    rm -r "$tmp/hf"
done
exit 0
