# The CPU and a small machine are proved from their weights alone.
"$TAPEOUT" build -q tests/machines/count.ckt -o "$tmp/count.chip" || exit 1
for chip in "$CHIP" "$tmp/count.chip"; do
    "$TAPEOUT" prove "$chip" >"$tmp/proof" && grep -q "^verdict: exact (worst margin 0\.[0-9]*)$" "$tmp/proof" || { tail -3 "$tmp/proof"; exit 1; }
done
