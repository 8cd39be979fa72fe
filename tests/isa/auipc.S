/* auipc.S: the pc plus twenty high bits. */
#include "test.h"
START
    CASE(1, a0, 0, auipc a1, 0; auipc a2, 0; sub a0, a2, a1; addi a0, a0, -4)
    CASE(2, a0, 0x1000, auipc a1, 0; auipc a2, 1; sub a0, a2, a1; addi a0, a0, -4)
    CASE(3, a0, 0xfffff000, auipc a1, 0; auipc a2, 0xfffff; sub a0, a2, a1; addi a0, a0, -4)
    CASE(4, a0, 0x80000000, auipc a1, 0; auipc a2, 0x80000; sub a0, a2, a1; addi a0, a0, -4)   /* wraps */
    CASE(5, a0, 0x7ffff000, auipc a1, 0; auipc a2, 0x7ffff; sub a0, a2, a1; addi a0, a0, -4)
    CASE(6, x0, 0, auipc x0, 0xfffff)
    CASE(7, a0, 0, la a1, 1f; 1: auipc a0, 0; sub a0, a0, a1)                   /* its own address */
PASS
