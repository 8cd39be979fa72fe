/* bne.S: branch if not equal. */
#include "test.h"
START
    BRANCH(1, bne, NOT_TAKEN, 0x00000000, 0x00000000)
    BRANCH(3, bne, TAKEN, 0x00000000, 0x00000001)
    BRANCH(5, bne, TAKEN, 0x00000001, 0x00000000)
    BRANCH(7, bne, NOT_TAKEN, 0xffffffff, 0xffffffff)
    BRANCH(9, bne, TAKEN, 0xffffffff, 0x00000000)
    BRANCH(11, bne, TAKEN, 0x00000000, 0xffffffff)
    BRANCH(13, bne, TAKEN, 0x7fffffff, 0x80000000)
    BRANCH(15, bne, TAKEN, 0x80000000, 0x7fffffff)
    BRANCH(17, bne, NOT_TAKEN, 0x80000000, 0x80000000)
    BRANCH(19, bne, TAKEN, 0x80000000, 0x80000001)
    BRANCH(21, bne, TAKEN, 0x12345678, 0x12345679)
    BRANCH(23, bne, TAKEN, 0x12345678, 0x52345678)
    CASE(25, a2, 0, li a0, -7; li a2, 1; bne a0, a0, 1f; li a2, 0; 1:)
    CASE(26, a2, 1, li a1, 3; li a2, 1; bne x0, a1, 1f; li a2, 0; 1:)
    CASE(27, a2, 1, li a0, -1; li a2, 1; bne a0, x0, 1f; li a2, 0; 1:)

    /* The farthest targets a branch reaches with aligned code: +4092 and -4096. */
    li gp, 28
    li a0, 0x00000009
    li a1, 0x00000008
    li a2, 0
    j 12f
10: addi a2, a2, 1                  /* 4096 bytes before the second branch */
    j 14f
    .space 4080
12: bne a0, a1, 13f                /* 4092 bytes before its target */
    j fail
11: bne a0, a1, 10b
    j fail
    .space 4076
13: addi a2, a2, 1
    j 11b
14: li t6, 2
    beq a2, t6, 15f
    j fail
15:
    /* A branch that is not taken may have a misaligned target. */
    li gp, 29
    li a0, 0x00000009
    li a1, 0x00000009
    .word 0x00b51363                /* bne a0, a1, .+6 */
PASS
