/* exit-ecall.S: Linux's exit system call; the status is the low byte of a0. */
    .section .init, "ax"
    .globl _start
_start:
    li a7, 93
    li a0, 0x1205
    ecall
