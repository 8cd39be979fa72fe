/* fault-illegal-slli.S: slli with bit 25 of the shift amount. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x02051513
