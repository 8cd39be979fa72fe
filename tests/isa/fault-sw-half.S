/* fault-sw-half.S: a word stored at an address that is only even. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    sw a1, 2(a0)
