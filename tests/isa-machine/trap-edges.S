/* trap-edges.S: just below and above the 64 KiB of RAM, and beside the devices.
 * not: qemu (it has more memory and more devices) */
#include "trap.h"
TRAP_START
    li a0, 0x80010000
    li a1, 0x1234
    CASE(1, a2, 0x5678, li a2, 0x5678; sw a2, -4(a0); lw a2, -4(a0))
    TRAPS(2, 5, 0x80010000, 78: lw a1, 0(a0))
    TRAPS(3, 7, 0x80010000, 78: sb a1, 0(a0))
    TRAPS(4, 5, 0x7ffffffc, li a0, 0x80000000; 78: lw a1, -4(a0))
    TRAPS(5, 7, 0x7fffffff, 78: sb a1, -1(a0))
    TRAPS(6, 5, 0x00000000, 78: lw a1, 0(x0))
    TRAPS(7, 7, 0x00000000, 78: sw a1, 0(x0))
    TRAPS(8, 5, 0x10000008, li a0, 0x10000000; 78: lbu a1, 8(a0))
    TRAPS(9, 7, 0x0fffffff, 78: sb a1, -1(a0))
    TRAPS(10, 7, 0x00100004, li a0, 0x00100000; 78: sw a1, 4(a0))
    TRAPS(11, 5, 0x00100000, 78: lw a1, 0(a0))
    TRAPS(12, 5, 0x01fffffc, li a0, 0x02000000; 78: lw a1, -4(a0))
    TRAPS(13, 5, 0x02010000, li a0, 0x02010000; 78: lw a1, 0(a0))
    TRAPS(14, 7, 0x02010000, 78: sw a1, 0(a0))
    CASE(15, a1, 0x1234, nop)
    /* The fetch, too: the word after the last one. */
    li gp, 16
    la s11, 1f
    li a0, 0x8000fffc
    li a1, 0x00000013               /* nop */
    sw a1, 0(a0)
    fence.i
    jr a0
    j fail
1:  li a0, 0x80010000
    bne s3, a0, 2f
    bne s4, a0, 2f
    li a0, 1
    beq s2, a0, 3f
2:  j fail
3:  li s11, 0
PASS
    HANDLER
