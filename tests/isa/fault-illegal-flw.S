/* fault-illegal-flw.S: F is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00052007
