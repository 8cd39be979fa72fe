/* riscv_test.h: the environment of self-checking unit tests (riscv-tests' "p"), for this machine: one hart in machine mode. A test ends in
 * ecall with its number in gp (1: passed), which the handler writes to `tohost`; so does an exception that the test did not expect.
 * A test may define the routine mtvec_handler, which then gets every other trap. */
#ifndef RISCV_TEST_H
#define RISCV_TEST_H

#define TESTNUM gp
#define RVTEST_RV32U .macro init; .endm
#define RVTEST_RV32M .macro init; .endm
#define RVTEST_RV64U RVTEST_RV32U

#define RVTEST_CODE_BEGIN                                                                  \
    .section .text.init, "ax"; .balign 64; .weak mtvec_handler;                            \
    .globl rvtest_entry_point, _start;                                                     \
rvtest_entry_point: _start:                                                                \
    li TESTNUM, 0;                                                                         \
    la t0, 1f; csrw mtvec, t0; csrwi 0x180, 0; .balign 4;      /* satp, if it exists */    \
1:  la t0, 1f; csrw mtvec, t0; csrwi 0x3b0, 0; .balign 4;      /* the first PMP entry */   \
1:  csrwi mie, 0;                                                                          \
    la t0, trap_vector; csrw mtvec, t0;                                                    \
    csrr a0, mhartid; bnez a0, write_tohost;                                               \
    init;                                                                                  \
    la t0, 2f; csrw mepc, t0; mret;                                                        \
    .balign 64;                                                                            \
trap_vector:                                                                               \
    csrr t5, mcause; li t6, 11; beq t5, t6, write_tohost;                                  \
    la t5, mtvec_handler; beqz t5, 3f; jr t5;                                              \
3:  ori TESTNUM, TESTNUM, 1337;                                                            \
write_tohost:                                                                              \
    sw TESTNUM, tohost, t5; sw x0, tohost + 4, t5; j write_tohost;                         \
    .balign 4;                                                                             \
2:

#define RVTEST_CODE_END unimp
#define RVTEST_PASS fence; li TESTNUM, 1; li a7, 93; li a0, 0; ecall
#define RVTEST_FAIL fence; 1: beqz TESTNUM, 1b; sll TESTNUM, TESTNUM, 1; or TESTNUM, TESTNUM, 1; li a7, 93; addi a0, TESTNUM, 0; ecall

#define RVTEST_DATA_BEGIN                                                                  \
    .pushsection .tohost, "aw", @progbits;                                                 \
    .balign 64; .globl tohost; tohost: .dword 0;                                           \
    .balign 64; .globl fromhost; fromhost: .dword 0; .popsection;                          \
    .balign 16; .globl begin_signature; begin_signature:
#define RVTEST_DATA_END .balign 16; .globl end_signature; end_signature:
#endif
