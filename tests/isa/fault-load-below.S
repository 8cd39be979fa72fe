/* fault-load-below.S: the byte just below the RAM. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    lbu a1, -1(a0)
