# Atomics beside everything else: single words, random programs, and the extension's own tests, each register and CSR after every step.
spec=cpu-spec/rv32ima.ckt
"$BUILD/tests/lockstep" $spec --words 30000 --seed 4 && "$BUILD/tests/lockstep" $spec --programs 100 --steps 3000 --seed 1000 &&
    "$BUILD/tests/lockstep" $spec --steps 20000 "$WORK"/isa-a/*.elf
