/* fault-illegal-andn.S: Zbb is not there: and with sub's funct7. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x40b57533
