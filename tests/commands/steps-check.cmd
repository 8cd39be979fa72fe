# A checked run that is stopped before a store compares what both have done by then.
for n in 1001 1002 1003 1004 1005 1006; do
    "$TAPEOUT" run "$CHIP" "$WORK/firmware/sort.elf" --check --max-steps $n 2>"$tmp/e" >"$tmp/o"
    grep -q "^rv32i: stopped after $n steps" "$tmp/e" && ! grep -q "^check:" "$tmp/e" || { cat "$tmp/e"; exit 1; }
done
