/* fault-store-below.S: the word just below the RAM. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    sw a1, -4(a0)
