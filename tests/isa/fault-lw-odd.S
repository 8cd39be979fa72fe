/* fault-lw-odd.S: a word at an odd address. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    lw a1, 1(a0)
