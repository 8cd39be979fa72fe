/* fault-illegal-sh1add.S: Zba is not there.
 * not: rv32im (there it is) */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x20b52533
