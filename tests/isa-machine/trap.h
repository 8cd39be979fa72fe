/* trap.h: more macros for programs that trap. The handler at the end (HANDLER) leaves mcause in s2, mepc in s3, mtval in s4,
 * counts in s5, and goes on at s11, or after the instruction when s11 is 0. It changes t5 besides. */
#include "../isa/test.h"

#define TRAP_START      \
    START               \
    la t0, handler;     \
    csrw mtvec, t0;     \
    li s11, 0;

/* `code` traps exactly once, at its label 78, with this cause and mtval. */
#define TRAPS(n, cause, tval, ...) \
    li gp, n;           \
    li s5, 0;           \
    la s6, 78f;         \
    __VA_ARGS__;        \
    li t6, 1;           \
    bne s5, t6, 76f;    \
    li t6, cause;       \
    bne s2, t6, 76f;    \
    bne s3, s6, 76f;    \
    li t6, tval;        \
    beq s4, t6, 77f;    \
76: j fail;             \
77:

/* An instruction word that is illegal here. */
#define ILLEGAL(n, encoding) TRAPS(n, 2, encoding, 78: .word encoding)

#define HANDLER         \
    .balign 4;          \
handler:                \
    csrr s2, mcause;    \
    csrr s3, mepc;      \
    csrr s4, mtval;     \
    addi s5, s5, 1;     \
    mv t5, s11;         \
    bnez t5, 1f;        \
    addi t5, s3, 4;     \
1:  csrw mepc, t5;      \
    mret

/* Waits until s5 is `count`, for a while: interrupts may be late. */
#define WAIT(count)     \
    li t6, 400000000;   \
    li t5, count;       \
75: beq s5, t5, 74f;    \
    addi t6, t6, -1;    \
    bnez t6, 75b;       \
    j fail;             \
74:

/* The CLINT's registers, from the base in a register. */
#define CLINT 0x02000000
