/* fault-load-null.S: a load from address 0. */
    .section .init, "ax"
    .globl _start
_start:
    lw a1, 0(x0)
