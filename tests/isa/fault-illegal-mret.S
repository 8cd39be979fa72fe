/* fault-illegal-mret.S: machine mode is not there.
 * not: rv32im (there it is) */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x30200073
