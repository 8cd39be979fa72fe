"$TAPEOUT" run "$tmp" "$tmp/ids" --backend sparse
