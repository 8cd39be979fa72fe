/* fault-jal-half.S: a jump to an address that is only even. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0020006f | 1 << 22      # j .+6
