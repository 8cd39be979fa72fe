/* csrrs.S: reads a CSR and sets the bits of rs1; with x0 it only reads. */
#include "../isa/test.h"
START
    li a0, 0x0000ff00
    csrw mscratch, a0
    CASE(1, a1, 0x0000ff00, li a0, 0x00ff00ff; csrrs a1, mscratch, a0)
    CASE(2, a1, 0x00ffffff, csrr a1, mscratch)
    CASE(3, a1, 0x00ffffff, li a0, 0; csrrs a1, mscratch, a0)
    CASE(4, a1, 0x00ffffff, csrrs a1, mscratch, x0)
    CASE(5, a0, 0x00ffffff, li a0, 0x80000000; csrrs a0, mscratch, a0)
    CASE(6, a1, 0x80ffffff, csrr a1, mscratch)
    CASE(7, x0, 0, li a0, 0x40000000; csrrs x0, mscratch, a0)
    CASE(8, a1, 0xc0ffffff, csrr a1, mscratch)
    CASE(9, a1, 0xffffffff, li a0, 0xffffffff; csrs mscratch, a0; csrr a1, mscratch)
PASS
