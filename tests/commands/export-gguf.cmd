# A GGUF file: magic, version, as many tensors and pairs as its header says, and bytes that depend on nothing but the chip. (What an engine says to
# it: tests/hf.) Of a hidden size h, 7 layers and v tokens the data begins with v rows of the embedding, whose unused last ones are zero.
"$TAPEOUT" build tests/machines/count.ckt -t native64 -q -o "$tmp/count.chip" || exit 1
"$TAPEOUT" export "$tmp/count.chip" --gguf "$tmp/count.gguf" && "$TAPEOUT" export "$tmp/count.chip" --gguf "$tmp/again.gguf" || exit 1
cmp "$tmp/count.gguf" "$tmp/again.gguf" || exit 1
[ "$(head -c 8 "$tmp/count.gguf" | od -An -tx1 | tr -d ' ')" = 4747554603000000 ] || { echo "no GGUF 3"; exit 1; }
tensors=$(od -An -td8 -j8 -N8 "$tmp/count.gguf" | tr -d ' ')
"$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/hf" >"$tmp/o" || exit 1
layers=$(grep -cE '"(linear|full)_attention"' "$tmp/hf/config.json")
[ "$tensors" = $((3 + 14 * (layers - 1) + 11)) ] || { echo "$tensors tensors for $layers layers"; exit 1; }
[ $(($(stat -c %s "$tmp/count.gguf") % 32)) = 0 ] || { echo "not padded"; exit 1; }
for name in token_embd.weight output.weight blk.0.ssm_a blk.$((layers - 1)).attn_output.weight tokenizer.ggml.tokens qwen35.ssm.state_size; do
    grep -qaF "$name" "$tmp/count.gguf" || { echo "no $name"; exit 1; }
done
[ ! -e "$tmp/.count.gguf"* ] || { echo "a temporary file is left"; exit 1; }
