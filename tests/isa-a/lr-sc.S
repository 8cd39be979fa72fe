/* lr-sc.S: a store-conditional succeeds (0) once, at the address that was reserved; otherwise it stores nothing (1). */
#include "../isa/test.h"
START
    li s0, 0x8000f000
    li s1, 0x8000f100
    li a0, 0x12345678
    sw a0, 0(s0)
    sw a0, 0(s1)
    li a1, 0x55aa55aa
    CASE(1, a2, 1, sc.w a2, a1, (s0))                   /* nothing is reserved */
    CASE(2, a2, 0x12345678, lw a2, 0(s0))
    CASE(3, a2, 0x12345678, lr.w a2, (s0))
    CASE(4, a2, 0, sc.w a2, a1, (s0))
    CASE(5, a2, 0x55aa55aa, lw a2, 0(s0))
    CASE(6, a2, 1, sc.w a2, a0, (s0))                   /* only once */
    CASE(7, a2, 0x55aa55aa, lw a2, 0(s0))
    CASE(8, a2, 1, lr.w a3, (s0); sc.w a2, a1, (s1))    /* another address */
    CASE(9, a2, 0x12345678, lw a2, 0(s1))
    CASE(10, a2, 1, lr.w a3, (s0); lr.w a3, (s1); sc.w a2, a0, (s0))
    CASE(11, a2, 0x55aa55aa, lw a2, 0(s0))
    CASE(12, a1, 0, lr.w.aq a3, (s0); sc.w.rl a1, a1, (s0))     /* rd is rs2 */
    CASE(13, x0, 0, lr.w a3, (s0); sc.w x0, a0, (s0))
    CASE(14, a2, 0x12345678, lw a2, 0(s0))
    CASE(15, s1, 0x12345678, mv a4, s1; lr.w s1, (s1); mv s2, s1)
    /* A counter, as locks are made. */
    li gp, 16
    li a4, 10
    sw x0, 0(s0)
1:  lr.w a2, (s0)
    addi a2, a2, 3
    sc.w a3, a2, (s0)
    bnez a3, 1b
    addi a4, a4, -1
    bnez a4, 1b
    CASE(16, a2, 30, lw a2, 0(s0))
PASS
