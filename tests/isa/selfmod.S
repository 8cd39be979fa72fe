/* selfmod.S: stores to code are seen by the fetch that follows, on this machine without a fence.
 * not: qemu (it translates a block of code before it runs it) */
#include "test.h"
START
    la s0, 1f
    li s1, 0x00100513               /* li a0, 1 */
    li s2, 0x00200513               /* li a0, 2 */
    CASE(1, a0, 2, li a0, 0; sw s2, 0(s0); 1: li a0, 9)     /* the very next instruction */
    CASE(2, a0, 1, la s0, 1f; li a0, 0; sw s1, 0(s0); nop; nop; 1: li a0, 9)
    CASE(3, a0, 0x109, la s0, 1f; li a0, 0; li a1, 0x10; sb a1, 3(s0); 1: li a0, 9)    /* one byte of it: 9 | 0x100 */
    CASE(4, a0, 0x7f9, la s0, 1f; li a0, 0; li a1, 0x7f90; sh a1, 2(s0); 1: li a0, 9)
    /* A loop that counts how often its body was rewritten: a0 = 1 + 2 + 1 + 2. */
    li gp, 5
    la s0, body
    li a2, 0
    li a3, 4
loop:
    sw s1, 0(s0)
    j body
back:
    add a2, a2, a0
    xor s1, s1, s2                  /* swap s1 and s2 */
    xor s2, s1, s2
    xor s1, s1, s2
    addi a3, a3, -1
    bnez a3, loop
    li t6, 6
    beq a2, t6, routine
    j fail
body:
    .word 0                         /* illegal until it has been written */
    j back
routine:
    /* A routine copied into the data section and run there, again after a change. */
    li gp, 6
    la s0, data
    la s1, 2f
    lw a0, 0(s1)
    lw a1, 4(s1)
    sw a0, 0(s0)
    sw a1, 4(s0)
    jalr s0
    li t6, 33
    beq a0, t6, 3f
    j fail
2:  li a0, 33
    ret
3:  li gp, 7
    li a0, 0x02c00513               /* li a0, 44 */
    sw a0, 0(s0)
    jalr s0
    li t6, 44
    beq a0, t6, 4f
    j fail
4:
PASS
    .data
    .balign 4
data:
    .space 16
