# Machine mode and atomics by planes: registers that are written late look back to numbers of earlier tokens, counters say their upper bits. All tests of these extensions as one
# batch beside one after the other by the sparse back end; some checked many tokens at a time, by paths beside the golden interpreter, and by the GPU's kernels on the host.
chip=$tmp/rv32ima.chip
"$TAPEOUT" build -q --no-prove cpu-spec/rv32ima.ckt -o "$chip" || exit 1
for f in "$WORK"/isa-{machine,clint,a}/*.elf; do printf '%s\t%s\n' "$f" "$tmp/$(basename "$f").out"; done >"$tmp/list"
for b in planes sparse; do
    "$TAPEOUT" run "$chip" --batch "$tmp/list" --max-steps 3000 --stats --backend $b 2>"$tmp/e.$b" | sort >"$tmp/got.$b"
    cat "$tmp"/*.elf.out >"$tmp/said.$b"
done
[ -s "$tmp/got.planes" ] && diff "$tmp/got.planes" "$tmp/got.sparse" && cmp "$tmp/said.planes" "$tmp/said.sparse" || exit 1
if grep "^path" "$tmp/e.planes"; then exit 1; fi
for f in "$WORK"/isa-{clint/irq-timer,machine/trap-edges,a/lr-sc}.elf; do
    "$TAPEOUT" check "$chip" "$f" --netlist --stats 2>"$tmp/e" || { cat "$tmp/e"; exit 1; }
    grep -q "^path: 512" "$tmp/e" || { cat "$tmp/e"; exit 1; }
    case $f in *trap-edges*) continue ;; esac
    "$BUILD/tests/freerun" "$chip" "$f" --patience 4 --every 1000000 >"$tmp/o" || { cat "$tmp/o"; exit 1; }
    if grep "^no_paths" "$tmp/o"; then exit 1; fi
done
[ -z "${SANITIZED:-}" ] || exit 0
grep -E "irq-software|trap-edges" "$tmp/list" >"$tmp/few"
"$TAPEOUT" run "$chip" --batch "$tmp/few" --max-steps 80 --stats --backend cuda-host >"$tmp/there" 2>"$tmp/e"
if grep "^path" "$tmp/e"; then exit 1; fi
"$TAPEOUT" run "$chip" --batch "$tmp/few" --max-steps 80 --backend sparse 2>/dev/null | diff - "$tmp/there"
