/* fault-jalr-half.S: a register jump to an address that is only even. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    jalr ra, 2(a0)
