/* fault-fetch-null.S: a jump to address 0. */
    .section .init, "ax"
    .globl _start
_start:
    jr x0
