/* no-supervisor.S: without S and U there is nothing to delegate to and no translation to fence.
 * not: qemu (it keeps medeleg, mideleg, the PMP and sfence.vma) */
#include "trap.h"
TRAP_START
    li a0, 0
    li a1, 0x1234
    TRAPS(1, 2, 0x302025f3, 78: csrrs a1, medeleg, x0)
    TRAPS(2, 2, 0x302515f3, 78: csrrw a1, medeleg, a0)
    TRAPS(3, 2, 0x303025f3, 78: csrrs a1, mideleg, x0)
    TRAPS(4, 2, 0x306025f3, 78: csrrs a1, mcounteren, x0)
    TRAPS(5, 2, 0x30602073, 78: csrrs x0, mcounteren, x0)
    TRAPS(6, 2, 0x3a0025f3, 78: csrrs a1, pmpcfg0, x0)
    TRAPS(7, 2, 0x3b0515f3, 78: csrrw a1, pmpaddr0, a0)
    ILLEGAL(8, 0x12000073)          /* sfence.vma */
    CASE(9, a1, 0x1234, nop)
PASS
    HANDLER
