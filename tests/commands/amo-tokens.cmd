# An AMO whose old value has both halves takes 4 tokens, carries aside: a step counter's in 64 steps, one of 16 AMOs, the program counter's in 64 instructions.
"$TAPEOUT" build -q --no-prove cpu-spec/rv32ima.ckt -o "$tmp/chip" || exit 1
tokens() { # COUNT of AMOs
    cat >"$tmp/a$1.S" <<END
#include "$PWD/tests/isa/test.h"
START
    la s0, word
    li s1, 0x12345678
    .rept $1
    amoadd.w a0, s1, (s0)
    .endr
PASS
    .balign 4
word: .word 0x0bcdef01
END
    firmware/build.sh "$tmp" "$tmp/a$1.S" || return 1
    "$TAPEOUT" run "$tmp/chip" "$tmp/a$1.elf" --check --stats 2>"$tmp/e" || return 1
    sed -n 's/^tokens: //p' "$tmp/e"
}
few=$(tokens 0) && many=$(tokens 64) || exit 2
[ $((many - few)) -le $((64 * 4 + 2 + 4 + 1)) ] || { echo "$((many - few)) tokens for 64 AMOs"; exit 3; }
