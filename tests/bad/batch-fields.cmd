printf "a\tb\tc\n" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l"
