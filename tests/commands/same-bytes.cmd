# The same source, target and options give the same bytes.
"$TAPEOUT" build "$SPEC" -o "$tmp/again.chip" && cmp "$CHIP" "$tmp/again.chip"
