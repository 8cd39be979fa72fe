#!/bin/bash
# run.sh [--update] [--level LEVEL]... [--list] [FILTER...]: finds every case by globbing, runs each at every level it has, prints
# what fails and ends with "N passed, N failed, N skipped". A FILTER is a part of a case's path. README.md tells the kinds of case.
# BUILD: the build folder (default build). TAPEOUT, CHIP: the program and a ready rv32i chip to use instead of the built ones.
# A program runs at every level on the first CPU that has what it needs, and at the level "check" on the default CPU, too.
# --update rewrites the expected outputs of tests/dsl, tests/netlist and tests/machines with what came out.
set -u
cd "$(dirname "$0")/.." || exit 2
export BUILD=${BUILD:-build} SPEC=cpu-spec/rv32i.ckt UPDATE=${UPDATE:-}
export TAPEOUT=${TAPEOUT:-$BUILD/tapeout} WORK=$BUILD/test-work
export CHIP=${CHIP:-$WORK/rv32i.chip}
program_levels="golden qemu sim sparse check plan dense"
default_cpu=rv32im
large=' rv32im_machine rv32ima ' # CPUs whose chip is built without a proof for the tests, and not simulated as a plan or densely
# QEMU's CPU cut down to what ours has, for programs that look at machine mode.
export qemu_cpu=rv32,c=false,f=false,d=false,h=false,s=false,u=false
PREFIX_STEPS=200 # how far the slow levels go; their token traces must equal the sparse back end's so far

say_failure() { # TEXT FILE...: what a failing case shows
    echo "  $1"; shift
    for f; do [ ! -s "$f" ] || head -n 12 "$f" | cut -c1-200 | sed 's/^/    /'; done
}

# same EXPECTED ACTUAL: compares, or with --update takes over.
same() {
    [ -z "$UPDATE" ] || cmp -s "$1" "$2" || cp "$2" "$1"
    diff -u "$1" "$2" >"$tmp/diff" 2>&1 || { say_failure "output differs from $1" "$tmp/diff"; return 1; }
}

# expect_run FILE STATUS: exit status and stderr against FILE ("exit: N", "stderr: part of it"); without FILE: 0.
expect_run() {
    local want=0 part ok=0
    [ ! -f "$1" ] || want=$(sed -n 's/^exit: //p' "$1")
    [ "$2" = "$want" ] || { say_failure "exit status $2, expected $want" "$tmp/err" "$tmp/out"; return 1; }
    [ -f "$1" ] || return 0
    while read -r part; do
        grep -qF -- "$part" "$tmp/err" || { say_failure "stderr lacks: $part" "$tmp/err"; ok=1; }
    done < <(sed -n 's/^stderr: //p' "$1")
    return $ok
}

run_into() { timeout 600 "$@" >"$tmp/out" 2>"$tmp/err" <"${in:-/dev/null}"; }

chip_of() { [ "$1" = rv32i ] && echo "$CHIP" || echo "$WORK/$1.chip"; } # CPU

# The two traces of the first steps, by the sparse back end and by another.
compare_prefix() { # BACKEND ELF CHIP
    run_into "$TAPEOUT" run "$3" "$2" --max-steps $PREFIX_STEPS --trace "$tmp/sparse.trace"
    run_into "$TAPEOUT" run "$3" "$2" --backend "$1" --max-steps $PREFIX_STEPS --trace "$tmp/other.trace"
    [ -s "$tmp/sparse.trace" ] || { say_failure "no trace" "$tmp/err"; return 1; }
    diff "$tmp/sparse.trace" "$tmp/other.trace" >"$tmp/diff" || { say_failure "traces differ (< sparse, > $1)" "$tmp/diff" "$tmp/err"; return 1; }
}

run_program() { # LEVEL SOURCE CPU
    local name elf chip expect=${2%.*}.expect out=${2%.*}.out in=/dev/null cpu=()
    chip=$(chip_of "$3")
    name=$(basename "${2%.*}"); elf=$WORK/$(basename "$(dirname "$2")")/$name.elf
    case $2 in firmware/*) expect=tests/firmware/$name.expect out=tests/firmware/$name.out ;; esac
    [ ! -f "${out%.out}.in" ] || in=${out%.out}.in
    case $1 in
    golden) run_into "$BUILD/tests/golden" --cpu "$3" "$elf" ;;
    qemu) command -v qemu-system-riscv32 >/dev/null || return 77
        [ "$3" = rv32i ] || cpu=(-cpu "$qemu_cpu")
        run_into qemu-system-riscv32 -M virt -bios none -nographic "${cpu[@]}" -kernel "$elf" ;;
    sim) run_into "$TAPEOUT" sim "cpu-spec/$3.ckt" "$elf" ;;
    sparse) run_into "$TAPEOUT" run "$chip" "$elf" --backend sparse ;;
    check) run_into "$TAPEOUT" run "$chip" "$elf" --check ;;
    *) compare_prefix "$1" "$elf" "$chip"; return ;;
    esac
    expect_run "$expect" $? || return 1
    [ ! -f "$out" ] || UPDATE='' same "$out" "$tmp/out"
}

run_machine() { # SOURCE: its test blocks, then the chip by itself with FILE.in as the host's input
    local chip=$tmp/chip in=/dev/null
    run_into "$TAPEOUT" test "$1" || { say_failure "tapeout test" "$tmp/err" "$tmp/out"; return 1; }
    run_into "$TAPEOUT" build "$1" -o "$chip" || { say_failure "tapeout build" "$tmp/err"; return 1; }
    [ ! -f "${1%.*}.in" ] || in=${1%.*}.in
    "$TAPEOUT" run "$chip" --check --stats <"$in" >"$tmp/out" 2>"$tmp/err"
    expect_run "${1%.*}.expect" $? && same "${1%.*}.out" "$tmp/out"
}

run_text() { # COMMAND SOURCE: stdout equals .out; or .err exists, and then stderr equals it and the status is 1
    run_into "$TAPEOUT" $1 "$2"
    local status=$?
    if [ -f "${2%.*}.err" ] || { [ ! -f "${2%.*}.out" ] && [ $status = 1 ]; }; then
        [ $status = 1 ] || { say_failure "exit status $status, expected 1" "$tmp/err"; return 1; }
        same "${2%.*}.err" "$tmp/err"
    else
        [ $status = 0 ] || { say_failure "exit status $status" "$tmp/err" "$tmp/out"; return 1; }
        same "${2%.*}.out" "$tmp/out"
    fi
}

run_case() { # LEVEL PATH CPU
    case $2 in
    firmware/*.c | tests/isa*/*.S) run_program "$1" "$2" "$3" ;;
    tests/machines/*) run_machine "$2" ;;
    tests/*.cmd) (. "$2") >"$tmp/out" 2>"$tmp/err" </dev/null
        local status=$?
        [ $status != 77 ] || return 77 # what it needs is not installed
        expect_run "${2%.*}.expect" $status ;;
    tests/netlist/*) run_text "dump --after optimized" "$2" ;;
    tests/dsl/*) run_text test "$2" ;;
    *) run_into "$2"; expect_run /dev/null/none $? ;;
    esac
}

if [ "${1:-}" = --one ]; then
    tmp=$(mktemp -d) || exit 2
    trap 'rm -rf "$tmp"' EXIT
    SECONDS=0
    report=$(run_case "$2" "$3" "${4:-}"); status=$?
    case $status in 0) word=pass ;; 77) word=skip ;; *) word=fail ;; esac
    printf '%s %s [%s] %d s\n' $word "$3" "$2${4:+ $4}" $SECONDS >>"$WORK/results"
    [ $word != fail ] || printf 'FAIL %s [%s]\n%s\n' "$3" "$2${4:+ $4}" "$report" >&2
    exit 0
fi

# What a program needs beside RV32I: an extension for the folder tests/isa-EXTENSION, and "needs: EXTENSION..." in the first comment.
needs_of() { # SOURCE
    case $1 in tests/isa-*) expr "$1" : 'tests/isa-\([^/]*\)/' ;; esac
    sed -n '1,12s/^[^A-Za-z]*needs: *\([^(*]*\).*/\1/p' "$1"
}

has_all() { # "CPU EXTENSION..." NEED...
    local row=" $1 " need; shift
    for need; do [[ $row = *" $need "* ]] || return 1; done
}

# The CPUs that a program runs on: the first that can, and the default one.
cpus_for() { # SOURCE
    local row first='' needs
    needs=$(needs_of "$1")
    while read -r row; do
        # shellcheck disable=SC2086  # needs are words
        has_all "$row" $needs || continue
        [ -z "$first" ] || [ "${row%% *}" = $default_cpu ] || continue
        first=1; echo "${row%% *}"
    done <<<"$cpus"
}

# Levels of a program that cost too much for it, and CPUs that it is not for, are named in its source: "not: LEVEL..." within the first comment.
list_program() { # SOURCE
    local level cpu levels=$program_levels skip
    skip=" $(sed -n '1,12s/^[^A-Za-z]*not: *\([^(*]*\).*/\1/p' "$1") "
    [ ! -f "${1%.S}.expect" ] || skip="$skip qemu " # what QEMU does at a fault is not what we do
    for cpu in $(cpus_for "$1"); do
        [[ $skip != *" $cpu "* ]] || continue
        [[ $large != *" $cpu "* ]] || skip="$skip sparse plan dense "
        for level in $levels; do
            [[ $skip = *" $level "* ]] || [[ ! -f cpu-spec/$cpu.ckt && " golden qemu " != *" $level "* ]] || echo "$level $1 $cpu"
        done
        levels=check
    done
}

list_cases() {
    local f cpus
    cpus=$("$BUILD/tests/golden" --cpus)
    for f in firmware/*.c tests/isa*/*.S; do [ "$f" = firmware/io.c ] || [ "$f" = firmware/stdio.c ] || list_program "$f"; done
    for f in tests/netlist/*.net; do [ ! -f "$f" ] || echo "text $f"; done
    for f in tests/dsl/*.ckt; do [ ! -f "$f" ] || echo "text $f"; done
    for f in tests/machines/*.ckt; do [ ! -f "$f" ] || echo "machine $f"; done
    for f in tests/*/*.cmd; do [ ! -f "$f" ] || echo "command $f"; done
    for f in "$BUILD"/tests/unit/*; do [ ! -f "$f" ] || [ ! -x "$f" ] || echo "unit $f"; done
}

levels='' list='' filters=()
while [ $# -gt 0 ]; do
    case $1 in
    --update) export UPDATE=1 ;;
    --level) levels="$levels $2"; shift ;;
    --list) list=1 ;;
    -*) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
    *) filters+=(-e "$1") ;;
    esac
    shift
done
cases=$(list_cases | { [ ${#filters[@]} -eq 0 ] && cat || grep -F "${filters[@]}"; } |
    { [ -z "$levels" ] && cat || grep -E "^(${levels// /|}) "; })
[ -z "$list" ] || { echo "$cases"; exit 0; }
[ -x "$TAPEOUT" ] || { echo "run.sh: no $TAPEOUT: build first (./setup.sh build)" >&2; exit 2; }
mkdir -p "$WORK" && : >"$WORK/results"
firmware/build.sh "$WORK/firmware" || exit 1
for folder in tests/isa*/; do firmware/build.sh "$WORK/$(basename "$folder")" "$folder"*.S || exit 1; done
if grep -qE '^(sparse|check|plan|dense|command) ' <<<"$cases"; then
    for cpu in rv32i $(awk '/^(sparse|check|plan|dense) / { print $3 }' <<<"$cases" | sort -u | grep -v '^rv32i$'); do
        [ "$cpu" != rv32i ] || [ "$CHIP" = "$WORK/rv32i.chip" ] || continue
        prove=; [[ $large != *" $cpu "* ]] || prove=--no-prove
        "$TAPEOUT" build $prove "cpu-spec/$cpu.ckt" -o "$(chip_of "$cpu")" >"$WORK/build.log" 2>&1 ||
            { cat "$WORK/build.log" >&2; echo "fail cpu-spec/$cpu.ckt [build]" >>"$WORK/results"; }
    done
fi
# What may take minutes begins first, so that nobody waits for it at the end.
cases=$(grep -E '^(command|unit) ' <<<"$cases"; grep -vE '^(command|unit) ' <<<"$cases")
[ -z "$cases" ] || xargs -P "${JOBS:-2}" -L 1 bash "$PWD/tests/run.sh" --one <<<"$cases"
count() { grep -c "^$1 " "$WORK/results"; }
echo "$(count pass) passed, $(count fail) failed, $(count skip) skipped"
[ "$(count fail)" = 0 ] && [ "$(count pass)" != 0 ]
