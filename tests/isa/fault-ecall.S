/* fault-ecall.S: an environment call that is not exit. */
    .section .init, "ax"
    .globl _start
_start:
    li a7, 64
    ecall
