/* csrrc.S: reads a CSR and clears the bits of rs1; with x0 it only reads. */
#include "../isa/test.h"
START
    li a0, 0xffffffff
    csrw mscratch, a0
    CASE(1, a1, 0xffffffff, li a0, 0x00ff00ff; csrrc a1, mscratch, a0)
    CASE(2, a1, 0xff00ff00, csrr a1, mscratch)
    CASE(3, a1, 0xff00ff00, csrrc a1, mscratch, x0)
    CASE(4, a0, 0xff00ff00, li a0, 0x80000001; csrrc a0, mscratch, a0)
    CASE(5, a1, 0x7f00ff00, csrr a1, mscratch)
    CASE(6, x0, 0, li a0, 0x0000ff00; csrrc x0, mscratch, a0)
    CASE(7, a1, 0x7f000000, csrr a1, mscratch)
    CASE(8, a1, 0x00000000, li a0, 0xffffffff; csrc mscratch, a0; csrr a1, mscratch)
PASS
