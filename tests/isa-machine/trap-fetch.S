/* trap-fetch.S: a jump or taken branch to an address that is no multiple of four traps itself, with the target in mtval, and
 * links nothing; a jump out of the memory arrives and traps there.
 * not: qemu (mtval of a branch is the address of its block there) */
#include "trap.h"
TRAP_START
    TRAPS(1, 0, 0x80000102, li ra, 0x55; li a1, 0x80000102; 78: jalr ra, 0(a1))
    CASE(2, ra, 0x55, nop)
    TRAPS(3, 0, 0x80000102, li a1, 0x80000103; 78: jalr ra, 0(a1))      /* bit 0 is dropped first */
    TRAPS(4, 0, 0x80000106, li a1, 0x80000107; 78: jalr x0, -1(a1))
    CASE(5, s5, 0, li s5, 0; li a1, 1; li a2, 2; beq a1, a2, half)       /* not taken: no trap */
1:  la s7, half
    li gp, 6
    li s5, 0
    la s6, 1f
    li a1, 1
1:  beq a1, a1, half
    bne s3, s6, 9f
    bne s4, s7, 9f
    bnez s2, 9f
    li gp, 7
    la s6, 1f
    li ra, 0x77
1:  jal ra, half
    bne s3, s6, 9f
    bne s4, s7, 9f
    li t6, 0x77
    bne ra, t6, 9f
    li t6, 2
    bne s5, t6, 9f
    /* Out of the memory: the jump itself retires. */
    li gp, 8
    la s11, 1f
    li a1, 0xf0000000
    li ra, 0
    jalr ra, 0(a1)
    j fail
1:  bne s3, a1, 9f
    bne s4, a1, 9f
    li t6, 1
    bne s2, t6, 9f
    la t6, 1b
    addi t6, t6, -4
    bne ra, t6, 9f
    li gp, 9
    la s11, 1f
    li a1, 0x00300000
    jr a1
1:  bne s3, a1, 9f
    bne s4, a1, 9f
    li s11, 0
PASS
9:  j fail
    .word 0
    .set half, . + 2
    .word 0, 0
    HANDLER
