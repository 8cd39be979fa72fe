/* fault-store-near-finisher.S: the word after the finisher. */
    .section .init, "ax"
    .globl _start
_start:
    li a0, 0x100000
    li a1, 0x5555
    sw a1, 4(a0)
