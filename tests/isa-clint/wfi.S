/* wfi.S: goes on, at the latest when an interrupt that mie allows is pending, whether or not mstatus.MIE lets it be taken. */
#include "../isa-machine/trap.h"
TRAP_START
    li s0, CLINT
    li a0, -1
    li a1, 0x4000
    add a1, a1, s0
    sw a0, 4(a1)                    /* mtimecmp is far */
    csrwi mie, 8
    li t0, 1
    sw t0, 0(s0)
    CASE(1, a2, 5, li s5, 0; li a2, 4; wfi; addi a2, a2, 1)
    CASE(2, s5, 0, nop)
    sw x0, 0(s0)
PASS
    HANDLER
