/* fault-lhu-odd.S: an unsigned half at an odd address. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    lhu a1, 3(a0)
