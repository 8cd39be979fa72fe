/* csr-readonly-zero.S: csrrs and csrrc with a register that is not x0 write, even when it holds 0.
 * not: qemu (it looks at the register's contents) */
#include "trap.h"
TRAP_START
    li a1, 0x1234
    li a2, 0
    TRAPS(1, 2, 0xf14625f3, 78: csrrs a1, mhartid, a2)
    TRAPS(2, 2, 0xc00635f3, 78: csrrc a1, cycle, a2)
    CASE(3, a1, 0x1234, nop)
PASS
    HANDLER
