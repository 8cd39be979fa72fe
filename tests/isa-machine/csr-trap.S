/* csr-trap.S: the registers of a trap: mtvec and mepc keep no lower two bits, mcause and mtval keep all.
 * not: qemu (vectored mode there is; causes that no trap has may be refused) */
#include "../isa/test.h"
START
    CASE(1, a1, 0x80001230, li a0, 0x80001233; csrw mtvec, a0; csrr a1, mtvec)
    CASE(2, a1, 0xfffffffc, li a0, 0xffffffff; csrw mtvec, a0; csrr a1, mtvec)
    CASE(3, a1, 0xfffffffc, csrrwi a1, mtvec, 3)
    CASE(4, a1, 0, csrr a1, mtvec)
    CASE(5, a1, 0xfffffffc, li a0, 0xffffffff; csrw mepc, a0; csrr a1, mepc)
    CASE(6, a1, 0x12345678, li a0, 0x12345679; csrw mepc, a0; csrr a1, mepc)
    CASE(7, a1, 0x12345678, li a0, 0x12345678; csrw mepc, a0; csrr a1, mepc)
    CASE(8, a1, 0x12345678, csrrci a1, mepc, 31)
    CASE(9, a1, 0x12345660, csrr a1, mepc)
    CASE(10, a1, 0xffffffff, li a0, 0xffffffff; csrw mcause, a0; csrr a1, mcause)
    CASE(11, a1, 0x80000007, li a0, 0x80000007; csrw mcause, a0; csrr a1, mcause)
    CASE(12, a1, 0x2aaaaaa5, li a0, 0x2aaaaaa5; csrw mcause, a0; csrr a1, mcause)
    CASE(13, a1, 0xffffffff, li a0, 0xffffffff; csrw mtval, a0; csrr a1, mtval)
    CASE(14, a1, 0x00000001, li a0, 0x00000001; csrw mtval, a0; csrr a1, mtval)
    CASE(15, a1, 0x2aaaaaa5, csrr a1, mcause)
    CASE(16, a1, 0x12345660, csrr a1, mepc)
PASS
