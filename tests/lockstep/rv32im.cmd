# The default CPU: single words and random programs with all that it has, and the programs that need it.
"$BUILD/tests/lockstep" cpu-spec/rv32im.ckt --words 200000 --seed 2 && "$BUILD/tests/lockstep" cpu-spec/rv32im.ckt --programs 300 --steps 2000 &&
    "$BUILD/tests/lockstep" cpu-spec/rv32im.ckt "$WORK"/isa-m/*.elf "$WORK"/isa-zba/*.elf && "$BUILD/tests/lockstep" cpu-spec/rv32im.ckt --steps 4000 "$WORK"/firmware/*like.elf "$WORK"/firmware/muldiv.elf
