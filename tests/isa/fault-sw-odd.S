/* fault-sw-odd.S: a word stored at an odd address. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    sw a1, 3(a0)
