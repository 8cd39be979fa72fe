/* trap-load.S: loads from nowhere trap with cause 5 and leave rd alone. */
#include "trap.h"
TRAP_START
    li a0, 0xf0000000
    li a1, 0x1234
    TRAPS(1, 5, 0xf0000000, 78: lw a1, 0(a0))
    TRAPS(2, 5, 0xf0000002, 78: lh a1, 2(a0))
    TRAPS(3, 5, 0xf0000003, 78: lb a1, 3(a0))
    TRAPS(4, 5, 0xf0000003, 78: lbu a1, 3(a0))
    TRAPS(5, 5, 0xefffff00, 78: lhu a1, -256(a0))
    TRAPS(6, 5, 0xf0000004, 78: lw x0, 4(a0))
    TRAPS(7, 5, 0x00300004, li a0, 0x00300000; 78: lw a0, 4(a0))
    TRAPS(8, 5, 0xfffffffc, 78: lw a1, -4(x0))
    CASE(9, a1, 0x1234, nop)
    CASE(10, a0, 0x00300000, nop)
PASS
    HANDLER
