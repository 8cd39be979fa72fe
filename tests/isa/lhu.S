/* lhu.S: unsigned halves at every offset that is aligned. */
#include "test.h"
START
    la s0, data
    CASE(1, a0, 0x00007f01, lhu a0, 0(s0))
    CASE(2, a0, 0x000080ff, lhu a0, 2(s0))
    CASE(3, a0, 0x00004567, lhu a0, 4(s0))
    CASE(4, a0, 0x00000123, lhu a0, 6(s0))
    CASE(5, a0, 0x0000beef, lhu a0, 8(s0))
    CASE(6, a0, 0x0000dead, lhu a0, 10(s0))
    CASE(7, a0, 0x00008000, lhu a0, 12(s0))
    CASE(8, a0, 0x0000cafe, lhu a0, 14(s0))
    la s1, end_data
    CASE(9, a0, 0x00007f01, lhu a0, -16(s1))
    CASE(10, a0, 0x000080ff, lhu a0, -14(s1))
    CASE(11, a0, 0x00004567, lhu a0, -12(s1))
    CASE(12, a0, 0x00000123, lhu a0, -10(s1))
    CASE(13, a0, 0x0000beef, lhu a0, -8(s1))
    CASE(14, a0, 0x0000dead, lhu a0, -6(s1))
    CASE(15, a0, 0x00008000, lhu a0, -4(s1))
    CASE(16, a0, 0x0000cafe, lhu a0, -2(s1))
    CASE(17, a0, 0x00007f01, addi a0, s0, -2032; lhu a0, 2032(a0))
    CASE(18, a0, 0x00007f01, addi a0, s0, 2047; addi a0, a0, 1; lhu a0, -2048(a0))
    CASE(19, x0, 0, lhu x0, 8(s0))
    CASE(20, a0, 0x00007f01, mv a0, s0; lhu a0, 0(a0))
PASS
    .data
    .balign 4
data:
    .word 0x80ff7f01, 0x01234567, 0xdeadbeef, 0xcafe8000
end_data:
