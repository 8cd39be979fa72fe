/* fault-illegal-mret.S: machine mode is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x30200073
