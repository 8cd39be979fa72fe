/* fault-lw-x0.S: a load into x0 still faults. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    lw x0, 2(a0)
