# Every machine of the repository is proved on every shape that holds it; so are machines with long loops over wide registers.
cat >"$tmp/wide.ckt" <<'CKT'
machine wide {
  reg a : u63 = 0x123456789abcdef0;
  reg b : u63 = 3;
  reg n : u4 = 0;
  output out : u8;
  exit stop : u8;
  step {
    if n == 9 { stop(0); }
    else {
      n := n + 1;
      iterate i in 0..63 carry r : u63 = 0, x : u63 = a {
        let t = {r, x[62]};
        x := {x[61:0], t >= zext(b, 64)};
        r := if t >= zext(b, 64) { (t - zext(b, 64))[62:0] } else { t[62:0] };
      } then { a := x; b := b + r; out(r[7:0]); }
    }
  }
}
CKT
failed=0
prove() { # SOURCE TARGET DTYPE
    "$TAPEOUT" build "$1" -t "$2" --dtype "$3" --no-prove -q -o "$tmp/x.chip" 2>"$tmp/why" || { grep -q "the target $2 has" "$tmp/why" && return; cat "$tmp/why"; failed=1; return; }
    "$TAPEOUT" prove "$tmp/x.chip" >"$tmp/proof" && grep -q "^verdict: exact (worst margin 0\.[0-9]*)$" "$tmp/proof" && return
    echo "$1 $2 $3: $(tail -n 1 "$tmp/proof")"; failed=1
}
for source in tests/machines/*.ckt backend/conform.ckt "$tmp/wide.ckt"; do
    for shape in native:f32 native:bf16 native64:f32 native64:bf16 qwen3.5-0.8b:bf16 qwen3.5-4b:bf16 qwen3.5-4b:f32; do prove "$source" "${shape%:*}" "${shape#*:}"; done
done
[ -z "${SANITIZED:-}" ] || exit $failed # the CPUs' proofs are minutes of the same code
for source in cpu-spec/rv32i.ckt cpu-spec/rv32im.ckt; do
    for shape in native:f32 native64:bf16 qwen3.5-4b:bf16 qwen3.5-4b:f32; do prove "$source" "${shape%:*}" "${shape#*:}"; done
done
for source in cpu-spec/rv32im_machine.ckt cpu-spec/rv32ima.ckt; do prove "$source" native f32; done # about a minute each
exit $failed
