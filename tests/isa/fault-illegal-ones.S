/* fault-illegal-ones.S: the all-ones word. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0xffffffff
