/* csrrw.S: swaps a register and a CSR, all bits. */
#include "../isa/test.h"
START
    CASE(1, a1, 0, csrw mscratch, x0; csrr a1, mscratch)
    CASE(2, a1, 0, li a0, 0x12345678; csrrw a1, mscratch, a0)
    CASE(3, a1, 0x12345678, csrr a1, mscratch)
    CASE(4, a1, 0x12345678, li a0, 0xffffffff; csrrw a1, mscratch, a0)
    CASE(5, a0, 0xffffffff, li a0, 0x80000001; csrrw a0, mscratch, a0)         /* rd is rs1: the swap */
    CASE(6, a1, 0x80000001, csrr a1, mscratch)
    CASE(7, a1, 0x80000001, csrrw a1, mscratch, x0)
    CASE(8, a1, 0, csrr a1, mscratch)
    CASE(9, x0, 0, li a0, 0x55aa55aa; csrrw x0, mscratch, a0)
    CASE(10, a1, 0x55aa55aa, csrr a1, mscratch)
    CASE(11, a2, 77, li a0, 77; csrw mscratch, a0; csrr a2, mscratch)          /* at once */
    CASE(12, a2, 78, li a0, 78; csrw mscratch, a0; li a0, 79; csrrw a2, mscratch, a0)
    CASE(13, a3, 79, csrrw a3, mscratch, a2)
    CASE(14, a4, 78, csrr a4, mscratch)
PASS
