/* fault-fetch-above.S: running off the end of the RAM. */
    .section .init, "ax"
    .globl _start
_start:
    la a0, __stack_top
    li a1, 0x00000013               # nop
    sw a1, -4(a0)
    jr -4(a0)
