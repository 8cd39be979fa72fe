# The statistics that others may read.
"$TAPEOUT" run "$CHIP" "$WORK/firmware/hello.elf" --check --stats >"$tmp/o" 2>"$tmp/e" || exit 1
for s in tokens steps tokens_per_step seconds tokens_per_second steps_per_second mismatches; do grep -qE "^$s: [0-9.]+$" "$tmp/e" || { echo "no $s"; exit 1; }; done
grep -q "^mismatches: 0$" "$tmp/e"
