/* fault-illegal-jalr.S: jalr with funct3 1. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00051067
