/* csr-mie.S: the three interrupts of machine mode can be enabled; mip cannot be written.
 * not: qemu (its mip can be written in part) */
#include "../isa/test.h"
START
    li s0, 0x02004000
    li a0, -1
    sw a0, 4(s0)                    /* mtimecmp is far */
    nop
    nop
    CASE(1, a1, 0, csrr a1, mie)
    CASE(2, a1, 0x888, li a0, 0xffffffff; csrw mie, a0; csrr a1, mie)
    CASE(3, a1, 0x888, csrrci a1, mie, 8)
    CASE(4, a1, 0x880, csrrw a1, mie, x0)
    CASE(5, a1, 0, csrr a1, mie)
    CASE(6, a1, 0, li a0, 0xffffffff; csrw mip, a0; csrr a1, mip)
    CASE(7, a1, 0, csrrsi a1, mip, 8)
    CASE(8, a1, 0, csrr a1, mip)
PASS
