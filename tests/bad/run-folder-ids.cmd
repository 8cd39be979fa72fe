"$TAPEOUT" run "$tmp"
