/* fault-branch-half.S: a taken branch to an address that is only even. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00000363                # beq x0, x0, .+6
