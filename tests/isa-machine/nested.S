/* nested.S: a handler that traps itself, three deep, each level keeping mepc and mstatus on a stack. */
#include "../isa/test.h"
START
    li sp, 0x8000f000
    la t0, deep
    csrw mtvec, t0
    li s0, 0                        /* depth now */
    li s1, 0                        /* traps in all */
    li s2, 0                        /* sum of the causes */
    CASE(1, s1, 3, ecall)
    CASE(2, s0, 0, nop)
    CASE(3, s2, 15, nop)            /* 11 + 2 + 2 */
    CASE(4, a0, 0x8000f000, mv a0, sp)
    CASE(5, s1, 4, li s1, 0; ecall; ecall)
PASS
    .balign 4
deep:
    addi sp, sp, -8
    csrr t0, mepc
    sw t0, 0(sp)
    csrr t0, mstatus
    sw t0, 4(sp)
    csrr t0, mcause
    add s2, s2, t0
    addi s0, s0, 1
    addi s1, s1, 1
    li t1, 3
    bge s0, t1, 1f
    bge s1, t1, 1f
    .word 0                         /* illegal */
1:  addi s0, s0, -1
    lw t0, 4(sp)
    csrw mstatus, t0
    lw t0, 0(sp)
    addi t0, t0, 4
    csrw mepc, t0
    addi sp, sp, 8
    mret
