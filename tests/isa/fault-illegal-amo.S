/* fault-illegal-amo.S: A is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x100522af
