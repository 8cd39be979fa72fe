/* fault-illegal-ebreak-rs1.S: ebreak with a source register. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00108073
