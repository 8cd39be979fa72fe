/* fault-illegal-branch3.S: the unused branch condition 3. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x00b53463
