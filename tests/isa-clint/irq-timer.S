/* irq-timer.S: mtime reaching mtimecmp raises interrupt 7; moving mtimecmp away takes it back. */
#include "../isa-machine/trap.h"
START
    la t0, tick
    csrw mtvec, t0
    li s0, 0x02004000               /* mtimecmp */
    li s1, 0x0200bff8               /* mtime */
    li s5, 0
    li s7, -1
    sw s7, 4(s0)
    sw s7, 0(s0)
    CASE(1, a0, -1, lw a0, 0(s0))
    CASE(2, a0, 0, nop; csrr a0, mip)
    li t0, 128
    csrw mie, t0
    csrsi mstatus, 8
    CASE(3, s5, 0, nop; nop; nop)
    li gp, 4
    lw a0, 0(s1)
    addi a0, a0, 200
    sw a0, 0(s0)
    sw x0, 4(s0)
    WAIT(1)
    CASE(5, a0, 0x80000007, mv a0, s2)
    CASE(6, a0, 0, mv a0, s4)
    CASE(7, a2, 1, lw a0, 0(s1); sltu a2, s8, a0)              /* mtimecmp had been reached */
    /* Five more, each set up by the handler. */
    li gp, 8
    li s9, 100
    lw a0, 0(s1)
    addi a0, a0, 100
    sw a0, 0(s0)
    sw x0, 4(s0)
    WAIT(6)
    csrci mstatus, 8
    /* A time in the past is due at once; mip shows it without MIE. */
    CASE(9, a0, 128, sw x0, 0(s0); sw x0, 4(s0); nop; nop; csrr a0, mip; andi a0, a0, 128)
    CASE(10, a0, 0, sw s7, 4(s0); nop; nop; csrr a0, mip)
    CASE(11, s5, 6, nop)
PASS
    .balign 4
tick:
    csrr s2, mcause
    csrr s3, mepc
    csrr s4, mtval
    addi s5, s5, 1
    lw s8, 0(s0)
    li t4, 6
    blt s5, t4, 1f
    sw s7, 4(s0)                    /* no more */
1:  bnez s9, 2f
    sw s7, 4(s0)
2:  lw t4, 0(s1)
    add t4, t4, s9
    sw t4, 0(s0)
    mret
