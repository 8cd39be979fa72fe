# Machine mode: single words, random programs with traps and CSRs, and its own tests, each register and CSR after every step.
spec=cpu-spec/rv32im_machine.ckt
[ -f $spec ] || exit 77
"$BUILD/tests/lockstep" $spec --words 100000 --seed 3 && "$BUILD/tests/lockstep" $spec --programs 200 --steps 3000 &&
    "$BUILD/tests/lockstep" $spec --steps 20000 "$WORK"/isa-machine/*.elf
