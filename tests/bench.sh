#!/bin/bash
# bench.sh [FILE.c...]: what a chip costs, per program of firmware/: instructions, tokens, tokens per instruction, tokens/s of the sparse
# back end (median of RUNS, start-up not counted), and the golden interpreter's instructions/s beside it. Ends with the chip's size.
# CPU=NAME takes another CPU of cpu-spec/ than rv32i; programs that need more than it has are left out.
# Figures go into tests/benchmarks.md with the machine and the commit; timings are never tests.
set -eu -o pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build} cpu=${CPU:-rv32i} runs=${RUNS:-3} chip=$(mktemp)
trap 'rm -f "$chip" "$chip".*' EXIT
stat_of() { sed -n "s/^$1: //p" "$2"; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores; commit $(git rev-parse --short HEAD 2>/dev/null || echo none)"
"$build/tapeout" build ${TARGET:+-t "$TARGET"} ${BUILD_FLAGS:-} "cpu-spec/$cpu.ckt" -o "$chip" >"$chip.report"
printf '%-10s %12s %12s %8s %14s %16s\n' program instructions tokens ratio tokens/s golden-instr/s
total_steps=0 total_tokens=0
for source in "${@:-}"; do [ -n "$source" ] && list="${list:-} $source"; done
for source in ${list:-firmware/*.c}; do
    name=$(basename "$source" .c) elf=$build/firmware/$(basename "$source" .c).elf
    [ -f "$elf" ] || continue
    [ "$cpu" != rv32i ] || ! sed -n 1,12p "$source" | grep -q 'needs:' || continue
    for _ in $(seq "$runs"); do
        "$build/tapeout" run "$chip" "$elf" --stats >/dev/null 2>"$chip.stats" </dev/null || true
        stat_of tokens_per_second "$chip.stats"
    done >"$chip.speed"
    "$build/tests/golden" --cpu "$cpu" "$elf" --stats >/dev/null 2>"$chip.golden" </dev/null || true
    steps=$(stat_of steps "$chip.stats") tokens=$(stat_of tokens "$chip.stats")
    printf '%-10s %12s %12s %8s %14s %16s\n' "$name" "$steps" "$tokens" "$(stat_of tokens_per_step "$chip.stats")" "$(median <"$chip.speed")" \
        "$(sed -n 's/^\(steps\|instructions\)_per_second: //p' "$chip.golden" | head -1)"
    total_steps=$((total_steps + steps)) total_tokens=$((total_tokens + tokens))
done
awk -v s="$total_steps" -v t="$total_tokens" 'BEGIN { printf "all: %d instructions, %d tokens, %.3f tokens per instruction\n", s, t, t / s }'
sed -n '/^layers/p;/^units/p;/^nonzeros/p;/^channels/p;/^geometry/p;/^vocabulary/p' "$chip.report"
