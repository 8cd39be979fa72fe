# The first steps of each C program, every register after every step.
"$BUILD/tests/lockstep" "$SPEC" --steps 4000 "$WORK"/firmware/*.elf
