/* irq-order.S: of two pending interrupts the software interrupt is taken first; an exception in between does not disturb. */
#include "../isa-machine/trap.h"
START
    la t0, both
    csrw mtvec, t0
    li s0, CLINT
    li s1, 0x02004000
    li s5, 0
    li s7, 0                        /* the causes in order, four bits each */
    csrci mstatus, 8
    li t0, 0x88
    csrw mie, t0
    sw x0, 0(s1)                    /* the timer is due */
    sw x0, 4(s1)
    li t0, 1
    sw t0, 0(s0)
    nop
    nop
    li gp, 1
    csrsi mstatus, 8
    WAIT(2)
    CASE(1, a0, 0x37, mv a0, s7)
    CASE(2, s7, 0x37b, ecall)
    CASE(3, s5, 3, nop)
PASS
    .balign 4
both:
    csrr t4, mcause
    addi s5, s5, 1
    slli s7, s7, 4
    andi t5, t4, 15
    or s7, s7, t5
    bltz t4, 1f
    csrr t5, mepc
    addi t5, t5, 4
    csrw mepc, t5
    j 3f
1:  li t5, 3
    andi t4, t4, 15
    bne t4, t5, 2f
    sw x0, 0(s0)
    j 3f
2:  li t5, -1
    sw t5, 4(s1)
3:  li t5, 2                        /* WAIT's register */
    mret
