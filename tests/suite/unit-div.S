/* unit-div.S: a unit test as the suites write them, with a handler for one trap that it causes itself. */
#include "riscv_test.h"
RVTEST_RV32M
RVTEST_CODE_BEGIN
    li TESTNUM, 2
    li a1, 100
    li a2, 7
    div a3, a1, a2
    li a4, 14
    bne a3, a4, fail
    li TESTNUM, 3
    rem a3, a1, x0
    bne a3, a1, fail
    li TESTNUM, 4
    li s0, 0
    .word 0x0000000b
    li a4, 2
    bne s0, a4, fail
    li TESTNUM, 5
    csrr a3, mscratch
    la a4, begin_signature
    sw s0, 0(a4)
    j pass
    .balign 4
    .globl mtvec_handler
mtvec_handler:
    csrr s0, mcause
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret
fail:
    RVTEST_FAIL
pass:
    RVTEST_PASS
RVTEST_CODE_END
    .data
RVTEST_DATA_BEGIN
    .word 0, 0, 0, 0
RVTEST_DATA_END
