/* counters.S: every instruction is one tick of mcycle, minstret and mtime; what is written to a counter is what is read next.
 * not: qemu (its counters follow the host's clock) */
#include "../isa/test.h"
START
    CASE(1, a2, 3, csrr a0, minstret; nop; nop; csrr a1, minstret; sub a2, a1, a0)
    CASE(2, a2, 3, csrr a0, mcycle; nop; nop; csrr a1, mcycle; sub a2, a1, a0)
    CASE(3, a2, 4, csrr a0, time; nop; nop; nop; csrr a1, time; sub a2, a1, a0)
    CASE(4, a2, 1, csrr a0, cycle; csrr a1, cycle; sub a2, a1, a0)
    CASE(5, a2, 1, csrr a0, instret; csrr a1, minstret; sub a2, a1, a0)
    CASE(6, a2, 22, csrr a0, instret; li a3, 10; 1: addi a3, a3, -1; bnez a3, 1b; csrr a1, instret; sub a2, a1, a0)
    CASE(7, a2, 3, li s0, 0x0200bff8; lw a0, 0(s0); nop; nop; lw a1, 0(s0); sub a2, a1, a0)
    CASE(8, a1, 1000, li a0, 1000; csrw minstret, a0; csrr a1, minstret)
    CASE(9, a1, 0x12345678, li a0, 0x12345678; csrw mcycle, a0; csrr a1, mcycle)
    CASE(10, a1, 0x00000005, csrwi minstreth, 5; csrr a1, minstreth)
    CASE(11, a1, 0x00000005, csrr a1, instreth)
    CASE(12, a1, 0x00000009, csrwi mcycleh, 9; csrr a1, cycleh)
    /* The carry: minstret is 0xffffffff, two instructions later it is 1 with 6 above it. */
    CASE(13, a1, 1, csrwi minstreth, 5; li a0, 0xffffffff; csrw minstret, a0; nop; nop; csrr a1, minstret)
    CASE(14, a1, 6, csrr a1, minstreth)
    /* mtime: both halves can be written. */
    CASE(15, a1, 7, li s0, 0x0200bff8; li a0, 7; sw a0, 4(s0); lw a1, 4(s0))
    CASE(16, a1, 7, csrr a1, timeh)
    CASE(17, a2, 1, li a0, 0x1000; sw a0, 0(s0); nop; nop; nop; lw a1, 0(s0); sub a1, a1, a0; sltiu a2, a1, 6)
    CASE(18, a2, 0, sw x0, 4(s0); csrr a2, timeh)
PASS
