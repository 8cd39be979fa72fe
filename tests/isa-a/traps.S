/* traps.S: atomics on words only, in RAM only: causes 4 and 5 for lr.w, 6 and 7 for the others.
 * not: qemu (it has atomics for devices, and misaligned ones) */
#include "../isa-machine/trap.h"
TRAP_START
    li a0, 0x8000f000
    li a1, 0x1234
    TRAPS(1, 4, 0x8000f002, addi a2, a0, 2; 78: lr.w a1, (a2))
    TRAPS(2, 6, 0x8000f001, addi a2, a0, 1; 78: sc.w a1, a0, (a2))
    TRAPS(3, 6, 0x8000f003, addi a2, a0, 3; 78: amoadd.w a1, a0, (a2))
    TRAPS(4, 5, 0xf0000000, li a2, 0xf0000000; 78: lr.w a1, (a2))
    TRAPS(5, 7, 0xf0000000, 78: sc.w a1, a0, (a2))
    TRAPS(6, 7, 0xf0000000, 78: amoswap.w a1, a0, (a2))
    CASE(7, a1, 0x1234, nop)
    ILLEGAL(8, 0x1015202f)          /* lr.w with rs2 */
    ILLEGAL(9, 0x0015302f)          /* amoadd.d */
    ILLEGAL(10, 0x2815202f)         /* no such funct5 */
    CASE(11, a2, 0, lw a2, 0(a0))
PASS
    HANDLER
