"$TAPEOUT" build tests/machines/count.ckt -q -o "$tmp/count.chip" && "$TAPEOUT" export "$tmp/count.chip" --gguf "$tmp/count.gguf"
