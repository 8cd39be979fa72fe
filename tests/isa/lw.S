/* lw.S: words at every offset that is aligned. */
#include "test.h"
START
    la s0, data
    CASE(1, a0, 0x80ff7f01, lw a0, 0(s0))
    CASE(2, a0, 0x01234567, lw a0, 4(s0))
    CASE(3, a0, 0xdeadbeef, lw a0, 8(s0))
    CASE(4, a0, 0xcafe8000, lw a0, 12(s0))
    la s1, end_data
    CASE(5, a0, 0x80ff7f01, lw a0, -16(s1))
    CASE(6, a0, 0x01234567, lw a0, -12(s1))
    CASE(7, a0, 0xdeadbeef, lw a0, -8(s1))
    CASE(8, a0, 0xcafe8000, lw a0, -4(s1))
    CASE(9, a0, 0x80ff7f01, addi a0, s0, -2032; lw a0, 2032(a0))
    CASE(10, a0, 0x80ff7f01, addi a0, s0, 2047; addi a0, a0, 1; lw a0, -2048(a0))
    CASE(11, x0, 0, lw x0, 8(s0))
    CASE(12, a0, 0x80ff7f01, mv a0, s0; lw a0, 0(a0))
PASS
    .data
    .balign 4
data:
    .word 0x80ff7f01, 0x01234567, 0xdeadbeef, 0xcafe8000
end_data:
