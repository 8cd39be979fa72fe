/* clint.S: the CLINT's registers answer to aligned words; msip keeps one bit. */
#include "../isa-machine/trap.h"
TRAP_START
    li s0, CLINT
    li s1, 0x02004000
    li s7, 0x0200bff8
    csrw mie, x0
    CASE(1, a0, 0, lw a0, 0(s0))
    CASE(2, a0, 1, li t0, -1; sw t0, 0(s0); lw a0, 0(s0))
    CASE(3, a0, 0, li t0, 0x10; sw t0, 0(s0); lw a0, 0(s0))
    CASE(4, a0, 0x12345678, li t0, 0x12345678; sw t0, 0(s1); li t0, 0x9abcdef0; sw t0, 4(s1); lw a0, 0(s1))
    CASE(5, a0, 0x9abcdef0, lw a0, 4(s1))
    CASE(6, a2, 1, lw a0, 0(s7); lw a1, 0(s7); sltu a2, a0, a1; sltu a3, a1, a0; xori a3, a3, 1; or a2, a2, a3)
    CASE(7, a0, 0, lw a0, 4(s7))
PASS
    HANDLER
