/* exit-finisher.S: the finisher: words it does not know are ignored, 0x3333 fails with the upper half. */
    .section .init, "ax"
    .globl _start
_start:
    li t0, 0x100000
    li t1, 0x1234
    sw t1, 0(t0)
    li t1, 77 << 16 | 0x3333
    sw t1, 0(t0)
    ebreak
