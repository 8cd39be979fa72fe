/* fault-store-null.S: a store to address 0. */
    .section .init, "ax"
    .globl _start
_start:
    sw a1, 0(x0)
