# Unit tests in the style of the public suites: 0 through tohost, or the number of the check that failed.
. tests/suite/suite.sh
cpu=$(cpu_with m machine)
for name in unit-div unit-fail; do
    want=0; [ $name = unit-div ] || want=3
    build_test $name || exit 1
    "$BUILD/tests/golden" --cpu $cpu "$tmp/$name.elf"; [ $? = $want ] || { echo "golden: $name"; exit 1; }
    [ -f cpu-spec/$cpu.ckt ] && [ $cpu != rv32im_machine ] || continue # its chip takes minutes to build
    "$TAPEOUT" build -q cpu-spec/$cpu.ckt -o "$tmp/chip" || exit 1
    "$TAPEOUT" run "$tmp/chip" "$tmp/$name.elf" --check --signature "$tmp/$name.sig"; [ $? = $want ] || { echo "chip: $name"; exit 1; }
done
