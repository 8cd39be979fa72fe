/* clint-sizes.S: bytes and half words of the CLINT are access faults, and so is an address that is no multiple of four.
 * not: qemu (it answers in part) */
#include "../isa-machine/trap.h"
TRAP_START
    li s0, CLINT
    li s1, 0x02004000
    li a0, 0x1234
    TRAPS(1, 5, 0x02000000, 78: lb a0, 0(s0))
    TRAPS(2, 5, 0x02000000, 78: lbu a0, 0(s0))
    TRAPS(3, 5, 0x02000000, 78: lh a0, 0(s0))
    TRAPS(4, 5, 0x02004002, 78: lhu a0, 2(s1))
    TRAPS(5, 5, 0x02004001, 78: lw a0, 1(s1))
    TRAPS(6, 5, 0x02004002, 78: lw a0, 2(s1))
    TRAPS(7, 7, 0x02000000, 78: sb a0, 0(s0))
    TRAPS(8, 7, 0x02000000, 78: sh a0, 0(s0))
    TRAPS(9, 7, 0x02004002, 78: sw a0, 2(s1))
    CASE(10, a0, 0x1234, nop)
    CASE(11, a0, 0, lw a0, 0(s0))
PASS
    HANDLER
