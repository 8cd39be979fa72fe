/* sw.S: words at every offset that is aligned; the rest of the word stays. */
#include "test.h"
START
    la s0, data
    CASE(1, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sw a0, 0(s0); lw a1, 0(s0))
    CASE(2, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sw a0, 4(s0); lw a1, 4(s0))
    CASE(3, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sw a0, 8(s0); lw a1, 8(s0))
    CASE(4, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sw a0, 12(s0); lw a1, 12(s0))
    la s1, end_data
    CASE(5, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sw a0, -16(s1); lw a1, 0(s0))
    CASE(6, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sw a0, -12(s1); lw a1, 4(s0))
    CASE(7, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sw a0, -8(s1); lw a1, 8(s0))
    CASE(8, a1, 0x8badf0d5, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sw a0, -4(s1); lw a1, 12(s0))
    CASE(9, a1, 0x00000000, li a0, 0x22222222; sw a0, 4(s0); sw x0, 4(s0); lw a1, 4(s0))
    CASE(10, a1, 0, li a0, 0; sw a0, 0(s0); sw a0, 8(s0); li a0, -1; sw a0, 4(s0); lw a1, 0(s0); lw a2, 8(s0); or a1, a1, a2)   /* neighbours keep their words */
    CASE(11, a1, 0x8badf0d5, sw x0, 0(s0); li a0, 0x8badf0d5; addi a2, s0, -2032; sw a0, 2032(a2); lw a1, 0(s0))
    CASE(12, a1, 0x8badf0d5, sw x0, 0(s0); li a0, 0x8badf0d5; addi a2, s0, 2047; addi a2, a2, 1; sw a0, -2048(a2); lw a1, 0(s0))
    CASE(13, a1, 0, sw x0, 0(s0); mv a0, s0; sw a0, 0(a0); lw a1, 0(s0); li a2, 0xffffffff; and a2, a2, s0; sub a1, a1, a2)   /* address and data in one register */
PASS
    .data
    .balign 4
data:
    .word 0x80ff7f01, 0x01234567, 0xdeadbeef, 0xcafe8000
end_data:
