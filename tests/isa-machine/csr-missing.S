/* csr-missing.S: a number without a register is an illegal instruction, read or written, and rd stays. */
#include "trap.h"
#define READ(n, number) TRAPS(n, 2, (number) << 20 | 0x000025f3, 78: csrrs a1, number, x0)
#define BOTH(n, number) READ(n, number) TRAPS((n) + 1, 2, (number) << 20 | 0x000515f3, 78: csrrw a1, number, a0)
TRAP_START
    li a0, 0
    li a1, 0x1234
    BOTH(1, 0x180)                  /* satp: no S */
    BOTH(3, 0x100)                  /* sstatus */
    BOTH(5, 0x306)                  /* mcounteren: no U */
    BOTH(7, 0x5ff)
    BOTH(9, 0x800)
    BOTH(11, 0xfff)
    BOTH(13, 0x7ff)
    BOTH(15, 0x30f)
    BOTH(17, 0x345)
    BOTH(19, 0xb01)                 /* mtime is no register */
    BOTH(21, 0xb81)
    BOTH(23, 0xf10)
    TRAPS(25, 2, 0x180065f3, 78: csrrsi a1, 0x180, 0)
    TRAPS(26, 2, 0x1800f5f3, 78: csrrci a1, 0x180, 1)
    CASE(27, a1, 0x1234, nop)
PASS
    HANDLER
