/* fault-illegal-wfi.S: wfi is privileged.
 * not: rv32im (there it is) */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x10500073
