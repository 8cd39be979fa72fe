/* fault-load-above.S: the byte just above the RAM. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, __stack_top
    lbu a1, 0(a0)
