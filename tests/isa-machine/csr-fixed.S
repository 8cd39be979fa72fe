/* csr-fixed.S: registers that always read the same and ignore writes.
 * not: qemu (its identity is another) */
#include "../isa/test.h"
#define ZERO(n, csr) CASE(n, a1, 0, li a0, 0xffffffff; csrw csr, a0; csrr a1, csr)
START
    csrr a1, misa
    li a0, ~1                       /* with or without A */
    and a1, a1, a0
    CASE(1, a1, 0x40001100, nop)
    CASE(2, a1, 0x40001100, csrw misa, x0; csrr a1, misa; li a0, ~1; and a1, a1, a0)
    CASE(3, a1, 0, li a1, 1; csrr a1, mvendorid)
    CASE(4, a1, 0, li a1, 1; csrr a1, marchid)
    CASE(5, a1, 0, li a1, 1; csrr a1, mimpid)
    CASE(6, a1, 0, li a1, 1; csrr a1, mhartid)
    CASE(7, a1, 0, li a1, 1; csrr a1, 0xf15)
    ZERO(8, 0x320)                  /* mcountinhibit */
    ZERO(9, 0x323)                  /* mhpmevent3, 31 */
    ZERO(10, 0x33f)
    ZERO(11, 0xb03)                 /* mhpmcounter3, 31 and their upper halves */
    ZERO(12, 0xb1f)
    ZERO(13, 0xb83)
    ZERO(14, 0xb9f)
    ZERO(15, 0xb10)
PASS
