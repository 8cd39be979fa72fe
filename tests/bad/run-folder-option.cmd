"$TAPEOUT" run "$tmp" "$tmp/ids" --check
