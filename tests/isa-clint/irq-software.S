/* irq-software.S: msip raises interrupt 3 when mie and mstatus.MIE allow it, and only then. */
#include "../isa-machine/trap.h"
START
    la t0, soft
    csrw mtvec, t0
    li s0, CLINT
    li s5, 0
    li a3, 0x4000
    add a3, a3, s0
    li a0, -1
    sw a0, 4(a3)                    /* mtimecmp is far */
    csrw mie, x0
    csrci mstatus, 8
    li t0, 1
    sw t0, 0(s0)
    CASE(1, a0, 1, lw a0, 0(s0))
    CASE(2, a0, 8, nop; nop; csrr a0, mip)
    CASE(3, s5, 0, csrsi mstatus, 8; nop; nop; nop)             /* mie says no */
    CASE(4, s5, 0, csrci mstatus, 8; csrwi mie, 8; nop; nop; nop)  /* mstatus says no */
    li gp, 5
    csrsi mstatus, 8
    WAIT(1)
    CASE(6, a0, 0x80000003, mv a0, s2)
    CASE(7, a0, 0, mv a0, s4)
    CASE(8, a0, 0, lw a0, 0(s0))
    CASE(9, a0, 0, csrr a0, mip)
    CASE(10, a0, 0x88, csrr a0, mstatus; andi a0, a0, 0x88)
    /* Raised while enabled; only bit 0 of msip counts. */
    li gp, 11
    li t0, -1
    sw t0, 0(s0)
    WAIT(2)
    li gp, 12
    li t0, -2
    sw t0, 0(s0)
    CASE(12, a0, 0, lw a0, 0(s0); nop; nop)
    CASE(13, s5, 2, nop)
    /* mepc is an instruction that has not been carried out: nothing is lost or done twice. */
    li gp, 14
    li a4, 0
    li a5, 100
1:  li t0, 1
    sw t0, 0(s0)
    addi a4, a4, 1
    addi a4, a4, 1
    addi a4, a4, 1
    addi a4, a4, 1
    addi a5, a5, -1
    bnez a5, 1b
    CASE(14, a4, 400, nop)
    CASE(15, a6, 1, slti a6, s5, 103; sltiu a0, s5, 4; xori a0, a0, 1; and a6, a6, a0)
PASS
    .balign 4
soft:
    csrr s2, mcause
    csrr s3, mepc
    csrr s4, mtval
    addi s5, s5, 1
    sw x0, 0(s0)
    mret
