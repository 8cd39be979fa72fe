"$TAPEOUT" conform --out "$tmp/kit" && "$TAPEOUT" export "$tmp/kit/conform.chip" --hf "$tmp/hf" --family kimi_linear
