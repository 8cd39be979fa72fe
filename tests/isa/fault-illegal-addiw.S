/* fault-illegal-addiw.S: addiw is of RV64. */
    .section .init, "ax"
    .globl _start
_start:
    .word 0x0015051b
