/* amoadd.S: sum in memory; rd is the word before. */
#include "../isa/test.h"
#define AMO(n, sum, old, a, b) \
    CASE(n, a2, old, li a0, a; sw a0, 0(s0); li a1, b; amoadd.w a2, a1, (s0)) \
    CASE((n) + 1, a3, sum, lw a3, 0(s0))
START
    li s0, 0x8000f000
    AMO(1, 0x00000000, 0x00000000, 0x00000000, 0x00000000)
    AMO(3, 0x00000003, 0x00000001, 0x00000001, 0x00000002)
    AMO(5, 0x00000003, 0x00000002, 0x00000002, 0x00000001)
    AMO(7, 0x00000000, 0xffffffff, 0xffffffff, 0x00000001)
    AMO(9, 0x00000000, 0x00000001, 0x00000001, 0xffffffff)
    AMO(11, 0xffffffff, 0x80000000, 0x80000000, 0x7fffffff)
    AMO(13, 0xffffffff, 0x7fffffff, 0x7fffffff, 0x80000000)
    AMO(15, 0xacf13568, 0x12345678, 0x12345678, 0x9abcdef0)
    AMO(17, 0x7fffffff, 0x80000000, 0x80000000, 0xffffffff)
    AMO(19, 0x100e100e, 0x0f0f0f0f, 0x0f0f0f0f, 0x00ff00ff)
    AMO(21, 0x0000000a, 0x00000005, 0x00000005, 0x00000005)
    CASE(23, a1, 7, li a0, 7; sw a0, 0(s0); li a1, 12; amoadd.w a1, a1, (s0))              /* rd is rs2 */
    CASE(24, a0, 0x00000013, lw a0, 0(s0))
    CASE(25, a3, 7, li a0, 7; sw a0, 0(s0); mv a3, s0; li a1, 12; amoadd.w a3, a1, (a3))  /* rd is rs1 */
    CASE(26, a0, 0x8000f007, sw a3, 0(s0); mv a3, s0; amoadd.w a2, a3, (a3); lw a0, 0(s0))    /* rs2 is rs1 */
    CASE(27, x0, 0, li a0, 9; sw a0, 0(s0); li a1, 12; amoadd.w x0, a1, (s0))
    CASE(28, a0, 0x00000015, lw a0, 0(s0))
    CASE(29, a0, 0x00000015, amoadd.w.aqrl a2, x0, (s0); lw a0, 0(s0))
PASS
