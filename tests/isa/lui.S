/* lui.S: twenty high bits. */
#include "test.h"
START
    CASE(1, a0, 0x00000000, lui a0, 0)
    CASE(2, a0, 0x00001000, lui a0, 1)
    CASE(3, a0, 0x80000000, lui a0, 0x80000)
    CASE(4, a0, 0x7ffff000, lui a0, 0x7ffff)
    CASE(5, a0, 0xfffff000, lui a0, 0xfffff)
    CASE(6, a0, 0x12345000, li a0, -1; lui a0, 0x12345)     /* the low bits are cleared */
    CASE(7, x0, 0, lui x0, 0xfffff)
    CASE(8, t5, 0xabcde000, lui t5, 0xabcde)
PASS
