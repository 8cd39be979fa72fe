/* fault-illegal-compressed.S: a 16-bit instruction: c.nop twice. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00010001
