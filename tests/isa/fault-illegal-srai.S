/* fault-illegal-srai.S: srai with a stray high bit. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x42055513
