printf -- "-\n" >"$tmp/l"; "$TAPEOUT" run "$CHIP" --batch "$tmp/l"
