# The same on the netlist as elaborated.
"$BUILD/tests/lockstep" "$SPEC" --words 10000 --seed 2 --raw
