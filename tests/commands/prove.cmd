# The CPUs and a small machine are proved from their weights alone.
"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/count.chip" || exit 1
"$TAPEOUT" build -q cpu-spec/rv32im.ckt --no-prove -o "$tmp/im.chip" || exit 1
"$TAPEOUT" build -q cpu-spec/rv32im.ckt -t qwen3.5-4b --no-prove -o "$tmp/im4b.chip" || exit 1
for chip in "$CHIP" "$tmp/count.chip" "$tmp/im.chip" "$tmp/im4b.chip"; do
    "$TAPEOUT" prove "$chip" >"$tmp/proof" && grep -q "^verdict: exact (worst margin 0\.[0-9]*)$" "$tmp/proof" || { tail -3 "$tmp/proof"; exit 1; }
done
