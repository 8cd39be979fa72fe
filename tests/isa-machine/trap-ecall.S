/* trap-ecall.S: ecall traps with cause 11 whatever a7 holds; mtval is 0. */
#include "trap.h"
TRAP_START
    TRAPS(1, 11, 0, li a7, 0; 78: ecall)
    TRAPS(2, 11, 0, li a7, 93; li a0, 5; 78: ecall)
    TRAPS(3, 11, 0, li a0, -1; csrw mtval, a0; csrw mepc, a0; csrw mcause, x0; 78: ecall)
PASS
    HANDLER
