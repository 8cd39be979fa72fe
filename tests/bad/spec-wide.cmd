# One token says what an output or exit says.
echo "machine m { output out : u25; reg n : u25 = 65; step { n := n + 1; out(n); } }" >"$tmp/m.ckt"; "$TAPEOUT" build "$tmp/m.ckt" -o "$tmp/chip"
