/* jal.S: jump and link, pc-relative. */
#include "test.h"
START
    CASE(1, a2, 1, li a2, 0; jal ra, 1f; j fail; 1: addi a2, a2, 1)             /* forward */
    CASE(2, a2, 3, li a2, 0; j 2f; 1: addi a2, a2, 1; j 3f; 2: addi a2, a2, 2; jal ra, 1b; j fail; 3:)
    CASE(3, a0, 0, jal a1, 1f; 2: j fail; 1: la a0, 2b; sub a0, a0, a1)         /* the link is the next pc */
    CASE(4, x0, 0, jal x0, 1f; j fail; 1:)
    CASE(5, a2, 7, li a2, 7; jal t0, 1f; 1:)                                    /* to the next instruction */
    CASE(6, a0, 0, jal a0, 1f; 2: j fail; 1: la a1, 2b; sub a0, a0, a1)
    /* Far: more than a branch can reach, both ways. */
    li gp, 7
    li a2, 0
    j 2f
1:  addi a2, a2, 1
    j 3f
    .space 9000
2:  jal a3, 1b
    j fail
3:  li t6, 1
    beq a2, t6, 4f
    j fail
4:
PASS
