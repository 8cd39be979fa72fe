/* fence-i.S: code that is written, then fenced, then run; again after a change, as data and through a trap handler. */
#include "trap.h"
TRAP_START
    la s0, patch
    li s1, 0x00100513               /* li a0, 1 */
    li s2, 0x00200513               /* li a0, 2 */
    CASE(1, a0, 1, sw s1, 0(s0); fence.i; call patch)
    CASE(2, a0, 2, sw s2, 0(s0); fence.i; call patch)
    CASE(3, a0, 0x7f, li t0, 0x07; sb t0, 3(s0); li t0, 0xf0; sb t0, 2(s0); fence.i; call patch)
    CASE(4, a0, -1, li t0, 0xfff0; sh t0, 2(s0); fence.i; call patch)
    /* A loop whose body changes every time: a0 = 0 + 1 + ... + 9. */
    li gp, 5
    li a2, 0
    li a3, 0
1:  slli t0, a3, 20
    li t1, 0x00000513
    or t0, t0, t1
    sw t0, 0(s0)
    fence.i
    call patch
    add a2, a2, a0
    addi a3, a3, 1
    li t1, 10
    blt a3, t1, 1b
    CASE(5, a2, 45, nop)
    TRAPS(6, 2, 0, la s0, 78f; sw x0, 0(s0); fence.i; 78: nop)
    CASE(7, a0, 3, la s0, handler2; li t0, 0x00300513; sw t0, 0(s0); fence.i; csrw mtvec, s0; ecall)
    .word 0x0000100f | 5 << 7 | 6 << 15 | 0x12300000  /* reserved fields are ignored */
PASS
    .balign 4
patch:
    .word 0
    ret
    .balign 4
handler2:
    .word 0
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret
    HANDLER
