"$TAPEOUT" build tests/machines/stack.ckt -t native64 -q -o "$tmp/x.chip" && "$TAPEOUT" export "$tmp/x.chip" --hf "$tmp/hf" --family kimi_linear
