/* arch-add.S: an architecture test as the suites write them: results into a signature, no checks of its own. RV32I only. The entry
 * lies behind other code. */
#include "model_test.h"
    .section .text.init, "ax"
#ifdef PRINT_SIGNATURE
    j rvtest_entry_point            /* QEMU begins at the first byte */
#endif
    ebreak
    .globl rvtest_entry_point
rvtest_entry_point:
    RVMODEL_BOOT
    la x31, begin_signature
    la x30, operands
    la x29, operands_end
1:  lw x1, 0(x30)
    lw x2, 4(x30)
    add x3, x1, x2
    sub x4, x1, x2
    xor x5, x3, x4
    sw x3, 0(x31)
    sw x4, 4(x31)
    sb x5, 8(x31)
    sh x3, 10(x31)
    sltu x6, x1, x2
    sb x6, 9(x31)
    addi x31, x31, 12
    addi x30, x30, 8
    bne x30, x29, 1b
    RVMODEL_HALT
    .data
operands:
    .word 0, 0, 1, -1, 0x7fffffff, 0x80000000, 0x12345678, 0x9abcdef0, 0xffff0000, 0x0000ffff
operands_end:
RVMODEL_DATA_BEGIN
    .fill 16, 4, 0xdeadbeef
RVMODEL_DATA_END
