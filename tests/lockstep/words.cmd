# Single random instructions from random registers, on the optimised netlist.
"$BUILD/tests/lockstep" "$SPEC" --words 300000 --seed 1
