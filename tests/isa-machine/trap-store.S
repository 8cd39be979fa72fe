/* trap-store.S: stores to nowhere trap with cause 7. */
#include "trap.h"
TRAP_START
    li a0, 0xf0000000
    li a1, 0x1234
    TRAPS(1, 7, 0xf0000000, 78: sw a1, 0(a0))
    TRAPS(2, 7, 0xf0000002, 78: sh a1, 2(a0))
    TRAPS(3, 7, 0xf0000003, 78: sb a1, 3(a0))
    TRAPS(4, 7, 0x00300004, li a0, 0x00300000; 78: sw a0, 4(a0))
    TRAPS(5, 7, 0xfffffffc, 78: sw a1, -4(x0))
    TRAPS(6, 7, 0xffffffff, 78: sb a1, -1(x0))
PASS
    HANDLER
