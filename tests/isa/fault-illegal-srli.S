/* fault-illegal-srli.S: srli with a stray high bit. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x80055513
