# The instruction tests to their ends, faults included.
"$BUILD/tests/lockstep" "$SPEC" "$WORK"/isa/*.elf
