/* fault-illegal-sd.S: sd is of RV64. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00b53023
