#!/bin/bash
# bench-gpu.sh: everything about the GPU back ends in one go, on a machine that has a GPU: first that they are right (the tests' cases natively: one machine beside the netlist,
# a batch against the processor's, the dense executor), and only then how fast: medians of RUNS (default 3) runs. STEPS=N instructions a machine (default 200,000);
# MACHINES="N..." the sizes of a batch. Figures go into tests/benchmarks.md with the machine and the commit; timings are never tests.
# BACKEND=cuda-host tries the script itself without a GPU (with small STEPS, MACHINES and CHECKED, DENSE_STEPS=0; its figures mean nothing).
set -eu -o pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build} runs=${RUNS:-3} steps=${STEPS:-200000} gpu=${BACKEND:-cuda} work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stat_of() { sed -n "s/^$1: //p" "$2"; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
say() { printf '%-44s %s\n' "$1" "$2"; }
fail() { echo "WRONG: $*" >&2; exit 1; }
run() { "$build/tapeout" run "$@"; }

chip=$work/rv32i.chip
"$build/tapeout" build -q cpu-spec/rv32i.ckt -o "$chip"
[ -f "$build/firmware/hello.elf" ] || firmware/build.sh "$build/firmware" >/dev/null
programs=(hello sort printf strings crc32 sha256 queens matrix)
list() { for i in $(seq "$1"); do printf '%s/firmware/%s.elf\t%s\n' "$build" "${programs[$((i % 8))]}" "$work/out$i${2:-}"; done; } # MACHINES SUFFIX
echo "machine: $(command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || echo no GPU); commit $(git rev-parse --short HEAD 2>/dev/null || echo none)"

echo "-- right?"
run "$chip" "$build/firmware/hello.elf" --backend "$gpu" --max-steps "$steps" >"$work/hello" 2>"$work/e" || [ "$steps" -lt 500 ] || fail "hello: $(cat "$work/e")"
[ "$steps" -lt 500 ] || cmp "$work/hello" tests/firmware/hello.out || fail "hello says something else"
run "$chip" "$build/firmware/sort.elf" --backend "$gpu" --check --max-steps $((steps < 300 ? steps : 300)) >/dev/null 2>"$work/e" || ! grep -q "^check" "$work/e" || fail "beside the netlist: $(cat "$work/e")"
for program in "${programs[@]}"; do
    for b in sparse "$gpu"; do run "$chip" "$build/firmware/$program.elf" --backend $b --max-steps $((steps / 10)) --trace "$work/$b.trace" >/dev/null 2>&1 || true; done
    cmp "$work/sparse.trace" "$work/$gpu.trace" || fail "$program: other tokens"
done
list "${CHECKED:-600}" .a >"$work/a"
list "${CHECKED:-600}" .b >"$work/b"
run "$chip" --batch "$work/a" --max-steps $((steps / 10)) >"$work/got.a" || true
run "$chip" --batch "$work/b" --max-steps $((steps / 10)) --backend "$gpu" --stats >"$work/got.b" 2>"$work/e" || true
! grep -q "^path" "$work/e" || fail "the batch did not run on the device: $(cat "$work/e")"
diff <(cut -f1-6 "$work/got.a") <(cut -f1-6 "$work/got.b") >/dev/null || fail "the batch ends otherwise than on the processor"
for a in "$work"/out*.a; do cmp "$a" "${a%a}b" || fail "a machine of the batch says something else"; done
small=$work/count.chip
for flags in "" "--dtype bf16" "-t qwen3.5-0.8b --vocab 4096"; do
    "$build/tapeout" build -q tests/machines/count.ckt $flags --no-prove -o "$small"
    run "$small" --backend "$gpu-dense" --check --max-steps 5 >/dev/null 2>"$work/e" </dev/null || ! grep -q "^check" "$work/e" || fail "dense $flags: $(cat "$work/e")"
done
for flags in "" "--dtype bf16"; do # a checkpoint, its prompt many tokens at a time
    "$build/tapeout" build -q tests/hf/mix.ckt --vocab 4096 $flags --no-prove -o "$small"
    "$build/tapeout" export "$small" --hf "$work/folder" >/dev/null
    "$build/tapeout" prompt "$small" >"$work/ids"
    run "$work/folder" "$work/ids" --max-tokens 100 --backend dense >"$work/a"
    run "$work/folder" "$work/ids" --max-tokens 100 --backend "$gpu-dense" | cmp - "$work/a" || fail "checkpoint $flags: other tokens"
done
echo "all as on the processor"

echo "-- how fast? tokens/s"
speed() { for _ in $(seq "$runs"); do run "$@" --stats 2>"$work/e" >/dev/null </dev/null || true; stat_of tokens_per_second "$work/e"; done | median; }
for program in sort crc32; do say "one machine, a thread block: $program" "$(speed "$chip" "$build/firmware/$program.elf" --backend "$gpu" --max-steps "$steps")"; done
for machines in ${MACHINES:-1024 16384 65536 262144}; do
    for i in $(seq "$machines"); do echo "$build/firmware/${programs[$((i % 8))]}.elf"; done >"$work/list"
    say "$machines machines, eight programs" "$(speed "$chip" --batch "$work/list" --backend "$gpu" --max-steps "$((steps / 10))")"
    sed -n '/^waves\|^blocks\|^lanes\|^opening\|^bytes/s/^/    /p' "$work/e"
done
[ "${DENSE_STEPS:-2000}" != 0 ] || exit 0
"$build/tapeout" build -q cpu-spec/rv32i.ckt -t qwen3.5-4b -D RAM=16KiB --no-prove -o "$work/dense.chip"
say "dense, layers of Qwen3.5-4B's shape" "$(speed "$work/dense.chip" "$build/firmware/sort.elf" --backend "$gpu-dense" --max-steps "${DENSE_STEPS:-2000}")"
"$build/tapeout" build -q cpu-spec/rv32i.ckt -t qwen3.5-4b -D RAM=16KiB --vocab 65536 --no-prove -o "$work/folder.chip"
"$build/tapeout" export "$work/folder.chip" --hf "$work/folder" >/dev/null
"$build/tapeout" prompt "$work/folder.chip" "$build/firmware/sort.elf" >"$work/ids"
say "the same as a checkpoint" "$(speed "$work/folder" "$work/ids" --backend "$gpu-dense" --max-tokens "${DENSE_STEPS:-2000}")"
say "... $(stat_of prompt "$work/e") tokens of its prompt, seconds" "$(stat_of prompt_seconds "$work/e")"
