# check --netlist: no trace; the chip is fed what its own netlist says, up to a number of steps. A chip whose netlist was changed behind its back does not
# say what that says.
"$TAPEOUT" check "$CHIP" "$WORK/firmware/sort.elf" --netlist && "$TAPEOUT" check "$CHIP" "$WORK/firmware/long.elf" --netlist --max-steps 300000 || exit 1
"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/count.chip" && "$TAPEOUT" check "$tmp/count.chip" --netlist || exit 1
LC_ALL=C sed 's/const 0xa/const 0xb/' "$tmp/count.chip" >"$tmp/other.chip"
cmp -s "$tmp/count.chip" "$tmp/other.chip" && { echo "the constant is not in the netlist"; exit 1; }
"$TAPEOUT" check "$tmp/other.chip" --netlist 2>"$tmp/e" && { echo "not noticed"; exit 1; }
grep -q "^token [0-9]*: the netlist says .*, the chip says " "$tmp/e" || { cat "$tmp/e"; exit 1; }
