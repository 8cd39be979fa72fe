/* mret.S: goes to mepc, MIE takes MPIE, MPIE becomes 1; a trap does the reverse. */
#include "trap.h"
#define BITS(reg) csrr reg, mstatus; andi reg, reg, 0x88
START
    li s10, 0x1800                  /* MPP: a machine with user mode would leave */
    csrw mstatus, s10
    CASE(1, a0, 0x80, la a1, 1f; csrw mepc, a1; mret; j fail; 1: BITS(a0))
    csrs mstatus, s10
    CASE(2, a0, 0x88, la a1, 1f; csrw mepc, a1; mret; j fail; 1: BITS(a0))
    CASE(3, a0, 0x88, csrs mstatus, s10; la a1, 1f; csrw mepc, a1; mret; 1: BITS(a0))
    csrci mstatus, 8
    li a1, 0x80
    csrc mstatus, a1
    CASE(4, a0, 0x00, BITS(a0))
    /* In a handler: MIE is 0 and MPIE what MIE was. */
    la a1, look
    csrw mtvec, a1
    CASE(5, a3, 0x80, csrsi mstatus, 8; ecall; mv a3, a4)
    CASE(6, a0, 0x88, BITS(a0))
    CASE(7, a3, 0x00, csrci mstatus, 8; ecall; mv a3, a4)
    CASE(8, a0, 0x80, BITS(a0))
    CASE(9, a2, 3, csrr a2, mcause; addi a2, a2, -8)
PASS
    .balign 4
look:
    BITS(a4)
    csrr t5, mepc
    addi t5, t5, 4
    csrw mepc, t5
    mret
