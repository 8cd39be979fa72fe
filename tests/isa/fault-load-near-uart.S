/* fault-load-near-uart.S: the first byte after the UART. */
    .section .init, "ax"
    .globl _start
_start:
    li a0, 0x10000008
    lbu a1, 0(a0)
