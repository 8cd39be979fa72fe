/* csrrsi.S: sets the bits of a constant; 0 only reads. */
#include "../isa/test.h"
START
    li a0, 0x80000100
    csrw mscratch, a0
    CASE(1, a1, 0x80000100, csrrsi a1, mscratch, 21)
    CASE(2, a1, 0x80000115, csrrsi a1, mscratch, 0)
    CASE(3, a1, 0x80000115, csrrsi a1, mscratch, 10)
    CASE(4, x0, 0, csrrsi x0, mscratch, 16)
    CASE(5, a1, 0x8000011f, csrr a1, mscratch)
PASS
