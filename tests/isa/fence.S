/* fence.S: waits for nothing on a machine of one hart; every form of it is legal. */
#include "test.h"
START
    CASE(1, a0, 5, li a0, 5; fence)
    CASE(2, a0, 6, li a0, 6; fence rw, w)
    CASE(3, a0, 7, li a0, 7; .word 0x8330000f)              /* fence.tso */
    CASE(4, a0, 8, li a0, 8; .word 0x0ff5050f)              /* rd and rs1 are reserved: ignored, a0 is not written */
    CASE(5, a0, 9, li a0, 9; .word 0x0000000f)              /* no sets at all */
    CASE(6, a1, 42, la s0, data; li a0, 42; sw a0, 0(s0); fence; lw a1, 0(s0))
PASS
    .data
data:
    .word 0
