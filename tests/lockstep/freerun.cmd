# A long run of the chip beside the golden interpreter (200 million instructions: tests/README.md). FREERUN: how many steps.
mkdir "$tmp/soak" && firmware/build.sh "$tmp/soak" tests/lockstep/soak.c && "$BUILD/tests/freerun" "$CHIP" "$tmp/soak/soak.elf" --steps "${FREERUN:-200000}"
