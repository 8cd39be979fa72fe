/* fault-illegal-zero.S: the all-zero word. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00000000
