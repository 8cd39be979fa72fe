/* jalr.S: jump and link to a register plus offset, bit 0 cleared. */
#include "test.h"
START
    CASE(1, a2, 1, li a2, 0; la a0, 1f; jalr ra, 0(a0); j fail; 1: addi a2, a2, 1)
    CASE(2, a1, 0, la a0, 1f; jalr ra, 0(a0); 2: j fail; 1: la a1, 2b; sub a1, a1, ra)  /* the link is the next pc */
    CASE(3, a1, 0, la a0, 1f; jalr a0, 0(a0); 2: j fail; 1: la a1, 2b; sub a1, a1, a0)  /* rd = rs1: old value used */
    CASE(4, x0, 0, la a0, 1f; jalr x0, 0(a0); j fail; 1:)
    CASE(5, a2, 5, li a2, 5; la a0, 1f; addi a0, a0, -2047; jalr ra, 2047(a0); j fail; 1:)
    CASE(6, a2, 6, li a2, 6; la a0, 1f; li a3, 2048; add a0, a0, a3; jalr ra, -2048(a0); j fail; 1:)
    CASE(7, a2, 7, li a2, 7; la a0, 1f; addi a0, a0, 1; jalr ra, 0(a0); j fail; 1:)     /* bit 0 is dropped */
    CASE(8, a2, 8, li a2, 8; la a0, 1f; jalr ra, 1(a0); j fail; 1:)
    CASE(9, a2, 9, li a2, 9; la a0, 1f; addi a0, a0, -3; jalr ra, 3(a0); j fail; 1:)
    CASE(10, a2, 10, li a2, 10; la a0, 1f; addi a0, a0, 1; jalr ra, -1(a0); j fail; 1:)
    /* Backward, and through a subroutine that returns twice. */
    li gp, 11
    li a2, 0
    j 2f
1:  addi a2, a2, 1
    ret
2:  call 1b
    call 1b
    li t6, 2
    beq a2, t6, 3f
    j fail
3:
PASS
