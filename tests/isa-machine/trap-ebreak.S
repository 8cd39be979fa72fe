/* trap-ebreak.S: ebreak traps with cause 3; mtval is 0 (the manual allows the address, too).
 * not: qemu (mtval depends on its version) */
#include "trap.h"
TRAP_START
    TRAPS(1, 3, 0, li a0, -1; csrw mtval, a0; 78: ebreak)
    TRAPS(2, 3, 0, li a7, 93; 78: ebreak)
PASS
    HANDLER
