/* fault-illegal-ecall-rd.S: ecall with a destination register. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x000000f3
