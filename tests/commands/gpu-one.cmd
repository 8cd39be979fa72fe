# The GPU's kernels on the host: one machine in a thread block: every token of hello as by the sparse back end; beside the netlist, every cell at the end; and a machine that
# reads its input.
"$TAPEOUT" run "$CHIP" "$WORK"/firmware/hello.elf --trace "$tmp/a" >"$tmp/out.a" || exit 1
"$TAPEOUT" run "$CHIP" "$WORK"/firmware/hello.elf --backend cuda-host --trace "$tmp/b" >"$tmp/out.b" || exit 1
cmp "$tmp/a" "$tmp/b" && cmp "$tmp/out.a" "$tmp/out.b" || exit 1
"$TAPEOUT" run "$CHIP" "$WORK"/firmware/sort.elf --backend cuda-host --check --max-steps 60 2>"$tmp/e"
grep -q "stopped after 60 steps, as asked" "$tmp/e" || { cat "$tmp/e"; exit 1; }
"$TAPEOUT" build -q tests/machines/upper.ckt --no-prove -o "$tmp/upper.chip" || exit 1
"$TAPEOUT" run "$tmp/upper.chip" --backend cuda-host --check <tests/machines/upper.in >"$tmp/upper" 2>"$tmp/e"
[ $? = 14 ] && cmp tests/machines/upper.out "$tmp/upper" || { cat "$tmp/e"; exit 1; }
