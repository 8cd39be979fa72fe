/* fault-illegal-sh1add.S: Zba is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x20b52533
