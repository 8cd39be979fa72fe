/* handler-moves.S: the handler may be another each time, and a handler that is taken away ends the run at the next fault. */
#include "../isa/test.h"
START
    la t0, first
    csrw mtvec, t0
    CASE(1, a1, 1, li a1, 0; ecall)
    la t0, second
    csrw mtvec, t0
    CASE(2, a1, 2, li a1, 0; ecall)
    la t0, first
    csrw mtvec, t0
    CASE(3, a1, 1, li a1, 0; .word 0)
    csrw mtvec, x0
    li a7, 93                       /* without a handler ecall ends the program again */
    li a0, 42
    ecall
    li a0, 1
PASS
    .balign 4
first:
    li a1, 1
    j 1f
second:
    li a1, 2
1:  csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret
