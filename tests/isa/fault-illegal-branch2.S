/* fault-illegal-branch2.S: the unused branch condition 2. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00b52463
