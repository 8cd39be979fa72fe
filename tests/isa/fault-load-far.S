/* fault-load-far.S: an address that differs from a good one only in bit 30. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, _start
    li a1, 0x40000000
    xor a0, a0, a1
    lw a1, 0(a0)
