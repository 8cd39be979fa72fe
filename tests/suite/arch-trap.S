/* arch-trap.S: an architecture test of machine mode: the handler appends cause, value and the trap's place to the signature. */
#include "model_test.h"
    .section .text.init, "ax"
    .globl rvtest_entry_point
rvtest_entry_point:
    RVMODEL_BOOT
    la x31, begin_signature
    la x1, handler
    csrw mtvec, x1
    ecall
    .word 0
    lw x1, 0(x31)
    li x2, 0xf0000000
    lw x1, 4(x2)
    sb x1, 7(x2)
    csrr x1, 0x7ff
    csrw 0xf14, x0
    addi x2, x2, 77
    mul x3, x2, x2
    sw x3, 0(x31)
    csrw mtvec, x0
    RVMODEL_HALT
    .balign 4
handler:
    csrr x10, mcause
    sw x10, 0(x31)
    csrr x10, mtval
    sw x10, 4(x31)
    csrr x10, mepc
    sw x10, 8(x31)
    addi x10, x10, 4
    csrw mepc, x10
    addi x31, x31, 12
    mret
    .data
RVMODEL_DATA_BEGIN
    .fill 24, 4, 0xdeadbeef
RVMODEL_DATA_END
