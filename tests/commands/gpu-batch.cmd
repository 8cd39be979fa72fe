# The GPU's kernels on the host: a batch of different programs, a lane each; status, steps, tokens, output as on the processor. Ranges are widened on the way.
firmware/build.sh "$tmp" tests/isa/fault-ebreak.S tests/isa/add.S 2>/dev/null || exit 1
for b in planes cuda-host; do
    for f in "$WORK"/firmware/{hello,sort,printf,strings,matrix,crc32,sha256,queens}.elf "$tmp"/*.elf; do printf '%s\t%s\n' "$f" "$tmp/$(basename "$f").$b"; done >"$tmp/list"
    "$TAPEOUT" run "$CHIP" --batch "$tmp/list" --max-steps 250 --stats --backend $b >"$tmp/got.$b" 2>"$tmp/e" && { echo "a failing machine passes"; exit 1; }
    if grep -q "^path" "$tmp/e"; then cat "$tmp/e"; exit 1; fi
done
[ "$(sed -n 's/^compilations: //p' "$tmp/e")" -gt 1 ] || { echo "no range was widened"; cat "$tmp/e"; exit 1; }
cut -f1-5 "$tmp/got.planes" | diff - <(cut -f1-5 "$tmp/got.cuda-host") || exit 1
for f in "$tmp"/*.planes; do [ "$f" = "$tmp/got.planes" ] || cmp "$f" "${f%planes}cuda-host" || exit 1; done
