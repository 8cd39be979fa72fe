# The CPU in every public geometry: built, proved, and its program runs as the netlist does. 1024 and 4096 are powers of four (pilots of one size);
# in 1024 channels are used again, also those of a read that goes on over many layers.
for shape in native64 qwen3.5-0.8b qwen3.5-2b qwen3.5-4b qwen3.5-9b qwen3.5-27b; do
    "$TAPEOUT" build "$SPEC" -t $shape -o "$tmp/s.chip" | grep -q "^proof: exact in every run" || { echo "$shape: not proved"; exit 1; }
    "$TAPEOUT" run "$tmp/s.chip" "$WORK/firmware/hello.elf" --check --stats 2>"$tmp/e" | cmp - tests/firmware/hello.out || exit 1
    grep -q "^mismatches: 0$" "$tmp/e" || { echo "$shape:"; cat "$tmp/e"; exit 1; }
done
