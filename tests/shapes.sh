#!/bin/bash
# shapes.sh [FILTER...]: the CPU on the shapes that the proof is about beside `native`: each chip is built with its proof, which must say exact, and runs
# the programs of firmware/ that it can run, every token and at the end every cell compared with the netlist.
#   STEPS=N        stops each program after N instructions (default: whole programs, hours for the slow shapes)
#   SHAPES="..."   words CPU:TARGET:DTYPE (default: those below)
#   JOBS=N         programs at once (default 2)
# A FILTER is a part of a program's name. Prints a line a program and ends with "N runs, N wrong"; the status is 1 when something is wrong.
set -u
cd "$(dirname "$0")/.." || exit 2
export BUILD=${BUILD:-build} STEPS=${STEPS:-}
export TAPEOUT=${TAPEOUT:-$BUILD/tapeout}
SHAPES=${SHAPES:-rv32i:native64:f32 rv32i:qwen3.5-4b:bf16 rv32im:native64:f32 rv32im:qwen3.5-4b:bf16 rv32im:qwen3.5-4b:f32}

needs_of() { sed -n '1,12s/^[^A-Za-z]*needs: *\([^(*]*\).*/\1/p' "$1"; }
can() { # CPU PROGRAM
    local row need
    row=" $("$BUILD/tests/golden" --cpus | grep -x "$1\( .*\)\?") "
    for need in $(needs_of "$2"); do [[ $row = *" $need "* ]] || return 1; done
}

if [ "${1:-}" = --one ]; then # CHIP PROGRAM SHAPE
    got=$("$TAPEOUT" run "$2" "$WORK/$3.elf" --check --stats ${STEPS:+--max-steps "$STEPS"} 2>&1 >"$WORK/$3.$4.out" </dev/null)
    [ -n "$STEPS" ] || cmp -s "$WORK/$3.$4.out" "tests/firmware/$3.out" || got="$got
output differs from tests/firmware/$3.out"
    grep -q "^mismatches: 0$" <<<"$got" && ! grep -q "^output" <<<"$got" && word=ok || word=WRONG
    echo "$word $4 $3 $(sed -n 's/^tokens: //p' <<<"$got") tokens"
    [ $word = ok ] || tail -n 3 <<<"$got" >&2
    exit 0
fi

WORK=$(mktemp -d) && export WORK || exit 2
trap 'rm -rf "$WORK"' EXIT
firmware/build.sh "$WORK" || exit 2
for shape in $SHAPES; do
    IFS=: read -r cpu target dtype <<<"$shape"
    if ! "$TAPEOUT" build -q "cpu-spec/$cpu.ckt" -t "$target" --dtype "$dtype" -o "$WORK/$shape.chip" 2>"$WORK/why" || [ -s "$WORK/why" ]; then
        echo "WRONG $shape is not proved"; cat "$WORK/why" >&2
    fi >>"$WORK/lines"
    for source in firmware/*.c; do
        name=$(basename "$source" .c) keep=$#
        for filter; do [[ $name != *"$filter"* ]] || keep=0; done
        [ "$name" != io ] && [ "$name" != stdio ] && [ "$keep" = 0 ] && can "$cpu" "$source" && echo "$WORK/$shape.chip $name $shape"
    done
done >"$WORK/list"
xargs -P "${JOBS:-2}" -L 1 "$0" --one <"$WORK/list" | tee -a "$WORK/lines"
wrong=$(grep -c ^WRONG "$WORK/lines")
echo "$(grep -c tokens "$WORK/lines") runs, $wrong wrong"
[ "$wrong" = 0 ] && [ -s "$WORK/list" ]
