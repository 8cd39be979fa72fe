# What is written cannot live in weights; the place is in the file that has it.
echo "machine part { mem f[4] : u8 in weights = { 1 }; reg i : u2; step { i := i + 1; f[i] := 2; } }" >"$tmp/part.ckt"
printf 'import "part.ckt";\nmachine m : part { }\n' >"$tmp/m.ckt"
"$TAPEOUT" build "$tmp/m.ckt" -o "$tmp/chip"
