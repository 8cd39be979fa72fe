/* fault-illegal-div.S: M is not there.
 * not: rv32im (there it is) */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x02b54533
