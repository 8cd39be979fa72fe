#!/bin/bash
# bench.sh [FILE.c...]: what a chip costs, per program of firmware/, as medians of RUNS (start-up apart):
#   instructions, tokens, tokens per instruction, tokens/s, instructions/s, start-up in ms (to the first instruction), memory in MiB,
#   and how many times faster the same ELF runs in the golden interpreter and under QEMU (its start, measured on the first program, taken off;
#   "-" where there is no QEMU, or the program is too short to tell).
# Then long runs by paths (the default back end of a run; LONG=4000000 instructions of the endless lockstep/soak.c, and of long.c), and many tokens at
# once: `check` of printf's trace on one core, `run --batch` of MACHINES (1024) times sort on all (MANY=0 leaves all of these out);
# then how the time depends on the size of the RAM and on how long a program has run (SCALE=0 leaves that out), and the chip's size.
# CPU=NAME takes another CPU of cpu-spec/ than rv32i; programs that need more than it has are left out. BACKENDS="sparse dense" gives a table
# for each; STEPS=N stops programs after N instructions (dense without it takes hours).
# Figures go into tests/benchmarks.md with the machine and the commit; timings are never tests.
set -eu -o pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build} cpu=${CPU:-rv32i} runs=${RUNS:-3} chip=$(mktemp)
trap 'rm -rf "$chip" "$chip".*' EXIT
stat_of() { sed -n "s/^$1: //p" "$2"; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
clock() { date +%s%N; }
seconds_of() { # of a command, its output thrown away
    local began ended
    began=$(clock)
    "$@" >/dev/null 2>&1 </dev/null || true
    ended=$(clock)
    awk -v n=$((ended - began)) 'BEGIN { print n / 1e9 }'
}
make_chip() { "$build/tapeout" build ${TARGET:+-t "$TARGET"} ${BUILD_FLAGS:-} "$@" "cpu-spec/$cpu.ckt" -o "$chip"; }
# run_chip ELF [OPTION...]: one run, its statistics in $chip.stats, its peak memory in $chip.memory
run_chip() {
    local time=
    [ ! -x /usr/bin/time ] || time="/usr/bin/time -o $chip.memory -f %M"
    $time "$build/tapeout" run "$chip" --backend "$backend" "$@" --stats >/dev/null 2>"$chip.stats" </dev/null || true
}
qemu() { timeout 60 qemu-system-riscv32 -M virt -bios none -nographic -kernel "$1"; }

list=("$@")
[ $# -gt 0 ] || list=(firmware/*.c)
qemu_start=
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg); commit $(git rev-parse --short HEAD 2>/dev/null || echo none)"
make_chip >"$chip.report"
for backend in ${BACKENDS:-sparse}; do
    echo "back end: $backend"
    printf '%-10s %12s %10s %7s %10s %10s %9s %7s %9s %9s\n' program instructions tokens ratio tokens/s instr/s start/ms MiB golden/x qemu/x
    total_steps=0 total_tokens=0
    for source in "${list[@]}"; do
        name=$(basename "$source" .c) elf=$build/firmware/$(basename "$source" .c).elf
        [ -f "$elf" ] || continue
        needs=$(sed -n '1,12s/.*needs: *//p' "$source")
    [[ $cpu != rv32i || -z $needs ]] && [[ $needs != *console* ]] || continue # what waits for input would wait for ever
        for _ in $(seq "$runs"); do
            run_chip "$elf" ${STEPS:+--max-steps "$STEPS"}
            stat_of tokens_per_second "$chip.stats"
            seconds_of "$build/tapeout" run "$chip" --backend "$backend" "$elf" --max-steps 1 >>"$chip.start"
        done >"$chip.speed"
        "$build/tests/golden" --cpu "$cpu" "$elf" --stats >/dev/null 2>"$chip.golden" </dev/null || true
        steps=$(stat_of steps "$chip.stats") tokens=$(stat_of tokens "$chip.stats") speed=$(median <"$chip.speed") qemu_time=
        if [ -z "${STEPS:-}" ] && command -v qemu-system-riscv32 >/dev/null; then
            qemu_time=$(seconds_of qemu "$elf")
            [ -n "$qemu_start" ] || qemu_start=$qemu_time
        fi
        awk -v name="$name" -v steps="$steps" -v tokens="$tokens" -v speed="$speed" -v start="$(median <"$chip.start")" \
            -v memory="$(tail -1 "$chip.memory" 2>/dev/null || true)" -v golden="$(stat_of '\(steps\|instructions\)_per_second' "$chip.golden")" \
            -v qemu="$qemu_time" -v empty="$qemu_start" 'BEGIN {
            ips = tokens ? speed * steps / tokens : 0
            q = qemu - empty > 0.02 && ips ? sprintf("%.0f", steps / (qemu - empty) / ips) : "-"
            g = golden && ips ? sprintf("%.0f", golden / ips) : "-"
            printf "%-10s %12d %10d %7.3f %10.0f %10.0f %9.0f %7s %9s %9s\n", name, steps, tokens, steps ? tokens / steps : 0, speed, ips,
                start * 1000, memory ? sprintf("%.0f", memory / 1024) : "-", g, q }'
        rm -f "$chip.start"
        total_steps=$((total_steps + steps)) total_tokens=$((total_tokens + tokens))
    done
    awk -v s="$total_steps" -v t="$total_tokens" 'BEGIN { printf "all: %d instructions, %d tokens, %.3f tokens per instruction\n", s, t, t / s }'
done
sed -n '/^layers/p;/^units/p;/^nonzeros/p;/^channels/p;/^geometry/p;/^vocabulary/p' "$chip.report"

if [ "${MANY:-1}" = 1 ]; then
    firmware/build.sh "$chip.d" tests/lockstep/soak.c
    backend=adaptive
    for elf in "$chip.d/soak.elf" "$build/firmware/long.elf"; do
        for _ in $(seq "$runs"); do
            run_chip "$elf" --max-steps "${LONG:-4000000}"
            stat_of tokens_per_second "$chip.stats"
        done >"$chip.speed"
        speed=$(median <"$chip.speed")
        echo "a long run, $(basename "$elf" .elf), $(stat_of steps "$chip.stats") instructions: $speed tokens/s," \
            "$(awk -v t="$speed" -v r="$(stat_of tokens_per_step "$chip.stats")" 'BEGIN { printf "%.0f", t / r }') instructions/s, $(stat_of paths "$chip.stats") paths," \
            "$(tail -1 "$chip.memory" 2>/dev/null | awk '{ printf "%.0f", $1 / 1024 }') MiB"
    done
    "$build/tapeout" run "$chip" "$build/firmware/printf.elf" --trace "$chip.trace" >/dev/null || true
    for _ in $(seq "${MACHINES:-1024}"); do echo "$build/firmware/sort.elf"; done >"$chip.list"
    for _ in $(seq "$runs"); do
        "$build/tapeout" check "$chip" "$build/firmware/printf.elf" "$chip.trace" --stats 2>"$chip.stats" || true
        stat_of tokens_per_second "$chip.stats" >>"$chip.check"
        "$build/tapeout" run "$chip" --batch "$chip.list" --stats >/dev/null 2>"$chip.stats" || true
        stat_of tokens_per_second "$chip.stats" >>"$chip.batch"
    done
    echo "check, one core: $(median <"$chip.check") tokens/s; batch of ${MACHINES:-1024}, $(stat_of threads "$chip.stats") threads:" \
        "$(median <"$chip.batch") tokens/s, $(stat_of bytes_per_machine "$chip.stats") bytes a machine"
fi

[ "${SCALE:-1}" = 1 ] || exit 0
backend=sparse
echo "tokens/s by how long firmware/long.c has run, and by the size of the RAM (firmware/crc32.c):"
for steps in 1000 10000 100000 1000000; do
    run_chip "$build/firmware/long.elf" --max-steps "$steps"
    echo "  after $(stat_of tokens "$chip.stats") tokens: $(stat_of tokens_per_second "$chip.stats")"
done
for ram in 64KiB 1MiB 4MiB; do
    make_chip -q -D RAM=$ram
    for _ in $(seq "$runs"); do
        run_chip "$build/firmware/crc32.elf"
        stat_of tokens_per_second "$chip.stats"
    done >"$chip.speed"
    echo "  $ram: $(median <"$chip.speed") tokens/s, start $(seconds_of "$build/tapeout" run "$chip" "$build/firmware/crc32.elf" --max-steps 1) s," \
        "$(awk '{ printf "%.0f", $1 / 1024 }' "$chip.memory") MiB"
done
