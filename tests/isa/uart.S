/* uart.S: a byte stored to the data register goes out, whatever the store's width; the status always says "ready". */
#include "test.h"
START
    li s0, 0x10000000
    CASE(1, a0, 0x60, lbu a0, 5(s0))
    CASE(2, a0, 0x20, lb a0, 5(s0); andi a0, a0, 0x20)
    li a0, 'A'
    sb a0, 0(s0)
    li a0, 0x1100 + 'B'             /* only the low byte counts */
    sb a0, 0(s0)
    li a0, '\n'
    sb a0, 0(s0)
PASS
