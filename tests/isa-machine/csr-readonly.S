/* csr-readonly.S: a write to a register whose number says "read-only" is an illegal instruction; a form that only reads is not. */
#include "trap.h"
TRAP_START
    li s5, 0
    li a0, -1
    csrr a1, mhartid
    csrrs a1, mhartid, x0
    csrrc a1, mhartid, x0
    csrrsi a1, mhartid, 0
    csrrci a1, mhartid, 0
    csrr a2, cycle
    csrr a2, time
    csrr a2, instret
    csrr a2, cycleh
    csrr a2, timeh
    csrr a2, instreth
    li a1, 0x1234
    CASE(1, s5, 0, nop)
    TRAPS(2, 2, 0xf14015f3, 78: csrrw a1, mhartid, x0)
    TRAPS(3, 2, 0xf1451073, 78: csrrw x0, mhartid, a0)
    TRAPS(4, 2, 0xf14525f3, 78: csrrs a1, mhartid, a0)
    TRAPS(5, 2, 0xf14535f3, 78: csrrc a1, mhartid, a0)
    TRAPS(6, 2, 0xf14055f3, 78: csrrwi a1, mhartid, 0)
    TRAPS(7, 2, 0xf140e5f3, 78: csrrsi a1, mhartid, 1)
    TRAPS(8, 2, 0xf14ff5f3, 78: csrrci a1, mhartid, 31)
    TRAPS(9, 2, 0xc0001073, 78: csrw cycle, x0)
    TRAPS(10, 2, 0xc0151073, 78: csrw time, a0)
    TRAPS(11, 2, 0xc0251073, 78: csrw instret, a0)
    TRAPS(12, 2, 0xc8051073, 78: csrw cycleh, a0)
    TRAPS(13, 2, 0xf1151073, 78: csrw mvendorid, a0)
    CASE(14, a1, 0x1234, nop)
PASS
    HANDLER
