/* fault-illegal-wfi.S: wfi is privileged. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x10500073
