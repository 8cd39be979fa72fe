/* fault-ebreak.S: a breakpoint. */
    .section .init, "ax"
    .globl _start
_start:
    ebreak
