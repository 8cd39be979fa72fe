/* fault-illegal-custom0.S: the custom-0 opcode. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0000000b
