"$TAPEOUT" run "$tmp" "$tmp/ids"
