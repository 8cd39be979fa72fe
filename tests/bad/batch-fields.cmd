printf "a\tb\tc\td\n" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l"
