# Five million instructions: one million on the chip, every 10,000 compared, four on the netlist, every one compared. FREERUN: how many on the
# chip (200 million: tests/README.md).
mkdir "$tmp/soak" && firmware/build.sh "$tmp/soak" tests/lockstep/soak.c && "$BUILD/tests/lockstep" "$SPEC" "$tmp/soak/soak.elf" --steps 4000000 &&
    "$BUILD/tests/freerun" "$CHIP" "$tmp/soak/soak.elf" --steps "${FREERUN:-1000000}"
