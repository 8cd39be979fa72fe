{ cat "$CHIP"; echo; } >"$tmp/x.chip"; "$TAPEOUT" info "$tmp/x.chip"
