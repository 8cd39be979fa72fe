# The same on the netlist as elaborated.
"$BUILD/tests/lockstep" "$SPEC" --words 50000 --seed 2 --raw
