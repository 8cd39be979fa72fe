/* csr-mstatus.S: MIE and MPIE can be written, MPP is always M, all else is 0. mstatush is 0.
 * not: qemu (more bits there are writable) */
#include "../isa/test.h"
START
    CASE(1, a1, 0x1800, csrr a1, mstatus)
    CASE(2, a1, 0x1800, li a0, 0xffffffff; csrrw a1, mstatus, a0)
    CASE(3, a1, 0x1888, csrr a1, mstatus)
    CASE(4, a1, 0x1888, csrrci a1, mstatus, 8)
    CASE(5, a1, 0x1880, csrrsi a1, mstatus, 8)
    CASE(6, a1, 0x1888, li a0, 0x80; csrrc a1, mstatus, a0)
    CASE(7, a1, 0x1808, li a0, 0x1800; csrrc a1, mstatus, a0)
    CASE(8, a1, 0x1808, csrrw a1, mstatus, x0)
    CASE(9, a1, 0x1800, csrr a1, mstatus)
    CASE(10, a1, 0, li a0, 0xffffffff; csrw 0x310, a0; csrr a1, 0x310)
PASS
