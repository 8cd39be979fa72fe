# The netlist as text has a line per operation and says where each came from.
"$TAPEOUT" dump "$SPEC" --after optimized >"$tmp/o" && grep -q "^circuit rv32i" "$tmp/o" && grep -q "^retire " "$tmp/o"
