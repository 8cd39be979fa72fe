head -c 5000 "$CHIP" >"$tmp/x.chip"; "$TAPEOUT" info "$tmp/x.chip"
