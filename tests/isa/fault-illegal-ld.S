/* fault-illegal-ld.S: ld is of RV64. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0005b503
