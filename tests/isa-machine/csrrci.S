/* csrrci.S: clears the bits of a constant; 0 only reads. */
#include "../isa/test.h"
START
    li a0, 0xffffffff
    csrw mscratch, a0
    CASE(1, a1, 0xffffffff, csrrci a1, mscratch, 21)
    CASE(2, a1, 0xffffffea, csrrci a1, mscratch, 0)
    CASE(3, a1, 0xffffffea, csrrci a1, mscratch, 2)
    CASE(4, x0, 0, csrrci x0, mscratch, 8)
    CASE(5, a1, 0xffffffe0, csrr a1, mscratch)
PASS
