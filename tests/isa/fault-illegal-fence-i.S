/* fault-illegal-fence-i.S: fence.i: Zifencei is not there. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0000100f
