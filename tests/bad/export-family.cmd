"$TAPEOUT" export "$CHIP" --hf "$tmp/hf" --family gpt2
