/* fault-illegal-mul.S: M is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x02b50533
