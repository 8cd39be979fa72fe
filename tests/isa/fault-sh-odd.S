/* fault-sh-odd.S: a half stored at an odd address. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    sh a1, 1(a0)
