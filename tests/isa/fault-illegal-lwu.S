/* fault-illegal-lwu.S: lwu is of RV64. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0005e503
