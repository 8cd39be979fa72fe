/* fault-lw-half.S: a word at an address that is only even. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    lw a1, 2(a0)
