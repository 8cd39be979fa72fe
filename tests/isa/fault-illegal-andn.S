/* fault-illegal-andn.S: Zbb is not there: and with sub's funct7.
 * not: rv32im (there it is) */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x40b57533
