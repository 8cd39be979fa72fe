/* trap-misaligned.S: misaligned loads (4) and stores (6) trap; neither rd nor memory changes.
 * not: qemu (it carries them out) */
#include "trap.h"
TRAP_START
    li a0, 0x8000f000
    li a1, 0x1234
    li a2, 0x11223344
    sw a2, 0(a0)
    sw a2, 4(a0)
    TRAPS(1, 4, 0x8000f001, 78: lw a1, 1(a0))
    TRAPS(2, 4, 0x8000f002, 78: lw a1, 2(a0))
    TRAPS(3, 4, 0x8000f003, 78: lw a1, 3(a0))
    TRAPS(4, 4, 0x8000f001, 78: lh a1, 1(a0))
    TRAPS(5, 4, 0x8000f003, 78: lhu a1, 3(a0))
    TRAPS(6, 4, 0x8000f001, 78: lw x0, 1(a0))
    TRAPS(7, 6, 0x8000f001, 78: sw a1, 1(a0))
    TRAPS(8, 6, 0x8000f002, 78: sw a1, 2(a0))
    TRAPS(9, 6, 0x8000f003, 78: sw a1, 3(a0))
    TRAPS(10, 6, 0x8000f001, 78: sh a1, 1(a0))
    TRAPS(11, 6, 0x8000f003, 78: sh a1, 3(a0))
    CASE(12, a1, 0x1234, nop)
    CASE(13, a3, 0x11223344, lw a3, 0(a0))
    CASE(14, a3, 0x11223344, lw a3, 4(a0))
    CASE(15, s5, 0, li s5, 0; lb a1, 1(a0); lbu a1, 3(a0); lh a1, 2(a0); sb a1, 1(a0); sh a1, 2(a0))
PASS
    HANDLER
