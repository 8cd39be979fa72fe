/* fault-illegal-fence-i.S: fence.i: Zifencei is not there.
 * not: rv32im (there it is) */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0000100f
