/* fault-lh-odd.S: a half at an odd address. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    lh a1, 1(a0)
