/* csrrwi.S: writes a constant of five bits, zero-extended. */
#include "../isa/test.h"
START
    li a0, 0x12345678
    csrw mscratch, a0
    CASE(1, a1, 0x12345678, csrrwi a1, mscratch, 31)
    CASE(2, a1, 31, csrrwi a1, mscratch, 0)
    CASE(3, a1, 0, csrrwi a1, mscratch, 1)
    CASE(4, a1, 1, csrrwi a1, mscratch, 16)
    CASE(5, x0, 0, csrrwi x0, mscratch, 10)
    CASE(6, a1, 10, csrr a1, mscratch)
PASS
