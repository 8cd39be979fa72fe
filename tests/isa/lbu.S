/* lbu.S: unsigned bytes at every offset that is aligned. */
#include "test.h"
START
    la s0, data
    CASE(1, a0, 0x00000001, lbu a0, 0(s0))
    CASE(2, a0, 0x0000007f, lbu a0, 1(s0))
    CASE(3, a0, 0x000000ff, lbu a0, 2(s0))
    CASE(4, a0, 0x00000080, lbu a0, 3(s0))
    CASE(5, a0, 0x00000067, lbu a0, 4(s0))
    CASE(6, a0, 0x00000045, lbu a0, 5(s0))
    CASE(7, a0, 0x00000023, lbu a0, 6(s0))
    CASE(8, a0, 0x00000001, lbu a0, 7(s0))
    CASE(9, a0, 0x000000ef, lbu a0, 8(s0))
    CASE(10, a0, 0x000000be, lbu a0, 9(s0))
    CASE(11, a0, 0x000000ad, lbu a0, 10(s0))
    CASE(12, a0, 0x000000de, lbu a0, 11(s0))
    CASE(13, a0, 0x00000000, lbu a0, 12(s0))
    CASE(14, a0, 0x00000080, lbu a0, 13(s0))
    CASE(15, a0, 0x000000fe, lbu a0, 14(s0))
    CASE(16, a0, 0x000000ca, lbu a0, 15(s0))
    la s1, end_data
    CASE(17, a0, 0x00000001, lbu a0, -16(s1))
    CASE(18, a0, 0x0000007f, lbu a0, -15(s1))
    CASE(19, a0, 0x000000ff, lbu a0, -14(s1))
    CASE(20, a0, 0x00000080, lbu a0, -13(s1))
    CASE(21, a0, 0x00000067, lbu a0, -12(s1))
    CASE(22, a0, 0x00000045, lbu a0, -11(s1))
    CASE(23, a0, 0x00000023, lbu a0, -10(s1))
    CASE(24, a0, 0x00000001, lbu a0, -9(s1))
    CASE(25, a0, 0x000000ef, lbu a0, -8(s1))
    CASE(26, a0, 0x000000be, lbu a0, -7(s1))
    CASE(27, a0, 0x000000ad, lbu a0, -6(s1))
    CASE(28, a0, 0x000000de, lbu a0, -5(s1))
    CASE(29, a0, 0x00000000, lbu a0, -4(s1))
    CASE(30, a0, 0x00000080, lbu a0, -3(s1))
    CASE(31, a0, 0x000000fe, lbu a0, -2(s1))
    CASE(32, a0, 0x000000ca, lbu a0, -1(s1))
    CASE(33, a0, 0x00000001, addi a0, s0, -2032; lbu a0, 2032(a0))
    CASE(34, a0, 0x00000001, addi a0, s0, 2047; addi a0, a0, 1; lbu a0, -2048(a0))
    CASE(35, x0, 0, lbu x0, 8(s0))
    CASE(36, a0, 0x00000001, mv a0, s0; lbu a0, 0(a0))
PASS
    .data
    .balign 4
data:
    .word 0x80ff7f01, 0x01234567, 0xdeadbeef, 0xcafe8000
end_data:
