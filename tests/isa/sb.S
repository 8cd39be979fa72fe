/* sb.S: bytes at every offset that is aligned; the rest of the word stays. */
#include "test.h"
START
    la s0, data
    CASE(1, a1, 0x111111d5, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, 0(s0); lw a1, 0(s0))
    CASE(2, a1, 0x1111d511, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, 1(s0); lw a1, 0(s0))
    CASE(3, a1, 0x11d51111, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, 2(s0); lw a1, 0(s0))
    CASE(4, a1, 0xd5111111, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, 3(s0); lw a1, 0(s0))
    CASE(5, a1, 0x111111d5, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, 4(s0); lw a1, 4(s0))
    CASE(6, a1, 0x1111d511, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, 5(s0); lw a1, 4(s0))
    CASE(7, a1, 0x11d51111, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, 6(s0); lw a1, 4(s0))
    CASE(8, a1, 0xd5111111, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, 7(s0); lw a1, 4(s0))
    CASE(9, a1, 0x111111d5, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, 8(s0); lw a1, 8(s0))
    CASE(10, a1, 0x1111d511, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, 9(s0); lw a1, 8(s0))
    CASE(11, a1, 0x11d51111, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, 10(s0); lw a1, 8(s0))
    CASE(12, a1, 0xd5111111, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, 11(s0); lw a1, 8(s0))
    CASE(13, a1, 0x111111d5, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, 12(s0); lw a1, 12(s0))
    CASE(14, a1, 0x1111d511, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, 13(s0); lw a1, 12(s0))
    CASE(15, a1, 0x11d51111, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, 14(s0); lw a1, 12(s0))
    CASE(16, a1, 0xd5111111, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, 15(s0); lw a1, 12(s0))
    la s1, end_data
    CASE(17, a1, 0x111111d5, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, -16(s1); lw a1, 0(s0))
    CASE(18, a1, 0x1111d511, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, -15(s1); lw a1, 0(s0))
    CASE(19, a1, 0x11d51111, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, -14(s1); lw a1, 0(s0))
    CASE(20, a1, 0xd5111111, li a0, 0x11111111; sw a0, 0(s0); li a0, 0x8badf0d5; sb a0, -13(s1); lw a1, 0(s0))
    CASE(21, a1, 0x111111d5, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, -12(s1); lw a1, 4(s0))
    CASE(22, a1, 0x1111d511, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, -11(s1); lw a1, 4(s0))
    CASE(23, a1, 0x11d51111, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, -10(s1); lw a1, 4(s0))
    CASE(24, a1, 0xd5111111, li a0, 0x11111111; sw a0, 4(s0); li a0, 0x8badf0d5; sb a0, -9(s1); lw a1, 4(s0))
    CASE(25, a1, 0x111111d5, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, -8(s1); lw a1, 8(s0))
    CASE(26, a1, 0x1111d511, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, -7(s1); lw a1, 8(s0))
    CASE(27, a1, 0x11d51111, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, -6(s1); lw a1, 8(s0))
    CASE(28, a1, 0xd5111111, li a0, 0x11111111; sw a0, 8(s0); li a0, 0x8badf0d5; sb a0, -5(s1); lw a1, 8(s0))
    CASE(29, a1, 0x111111d5, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, -4(s1); lw a1, 12(s0))
    CASE(30, a1, 0x1111d511, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, -3(s1); lw a1, 12(s0))
    CASE(31, a1, 0x11d51111, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, -2(s1); lw a1, 12(s0))
    CASE(32, a1, 0xd5111111, li a0, 0x11111111; sw a0, 12(s0); li a0, 0x8badf0d5; sb a0, -1(s1); lw a1, 12(s0))
    CASE(33, a1, 0x22222200, li a0, 0x22222222; sw a0, 4(s0); sb x0, 4(s0); lw a1, 4(s0))
    CASE(34, a1, 0, li a0, 0; sw a0, 0(s0); sw a0, 8(s0); li a0, -1; sb a0, 4(s0); lw a1, 0(s0); lw a2, 8(s0); or a1, a1, a2)   /* neighbours keep their words */
    CASE(35, a1, 0x000000d5, sw x0, 0(s0); li a0, 0x8badf0d5; addi a2, s0, -2032; sb a0, 2032(a2); lw a1, 0(s0))
    CASE(36, a1, 0x000000d5, sw x0, 0(s0); li a0, 0x8badf0d5; addi a2, s0, 2047; addi a2, a2, 1; sb a0, -2048(a2); lw a1, 0(s0))
    CASE(37, a1, 0, sw x0, 0(s0); mv a0, s0; sb a0, 0(a0); lw a1, 0(s0); li a2, 0xff; and a2, a2, s0; sub a1, a1, a2)   /* address and data in one register */
PASS
    .data
    .balign 4
data:
    .word 0x80ff7f01, 0x01234567, 0xdeadbeef, 0xcafe8000
end_data:
