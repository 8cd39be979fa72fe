/* fault-illegal-csrrw.S: Zicsr is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x34051073
