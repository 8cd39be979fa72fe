/* model_test.h: the macros by which an architecture test (riscv-arch-test, RISCOF) reaches a model, for this one. A test ends by
 * writing 1 to `tohost`; `tapeout run --signature FILE` then has the words between begin_signature and end_signature.
 * With -DPRINT_SIGNATURE the program prints them itself and ends through the finisher: for models without `tohost`, such as QEMU. */
#ifndef MODEL_TEST_H
#define MODEL_TEST_H

#define RVMODEL_BOOT

#define RVMODEL_DATA_SECTION                        \
    .pushsection .tohost, "aw", @progbits;          \
    .balign 8; .globl tohost; tohost: .dword 0;     \
    .balign 8; .globl fromhost; fromhost: .dword 0; \
    .popsection;

#define RVMODEL_DATA_BEGIN                          \
    RVMODEL_DATA_SECTION                            \
    .balign 16; .globl begin_signature; begin_signature:
#define RVMODEL_DATA_END                            \
    .balign 16; .globl end_signature; end_signature:

#ifndef PRINT_SIGNATURE
#define RVMODEL_HALT                                \
    li x1, 1;                                       \
8:  sw x1, tohost, t5;                              \
    j 8b;
#else
#define RVMODEL_HALT                                \
    la a0, begin_signature;                         \
    la a1, end_signature;                           \
    li a2, 0x10000000;                              \
    li a6, 10;                                      \
5:  beq a0, a1, 8f;                                 \
    lw a3, 0(a0);                                   \
    addi a0, a0, 4;                                 \
    li a4, 28;                                      \
6:  srl a5, a3, a4;                                 \
    andi a5, a5, 15;                                \
    addi a7, a5, 48;                                \
    blt a5, a6, 7f;                                 \
    addi a7, a5, 87;                                \
7:  sb a7, 0(a2);                                   \
    addi a4, a4, -4;                                \
    bgez a4, 6b;                                    \
    sb a6, 0(a2);                                   \
    j 5b;                                           \
8:  li a0, 0x100000;                                \
    li a1, 0x5555;                                  \
    sw a1, 0(a0);                                   \
9:  j 9b;
#endif

/* A console is no part of a test's result. */
#define RVMODEL_IO_INIT
#define RVMODEL_IO_WRITE_STR(reg, text)
#define RVMODEL_IO_CHECK()
#define RVMODEL_IO_ASSERT_GPR_EQ(scratch, reg, value)
#define RVMODEL_IO_ASSERT_SFPR_EQ(freg, reg, value)
#define RVMODEL_IO_ASSERT_DFPR_EQ(freg, reg, value)

/* Interrupts of the CLINT; there is no external one. */
#define RVMODEL_CLINT 0x02000000
#define RVMODEL_SET_MSW_INT    li t1, 1; li t2, RVMODEL_CLINT; sw t1, 0(t2);
#define RVMODEL_CLEAR_MSW_INT  li t2, RVMODEL_CLINT; sw x0, 0(t2);
#define RVMODEL_CLEAR_MTIMER_INT \
    li t1, -1; li t2, RVMODEL_CLINT + 0x4000; sw t1, 4(t2); sw t1, 0(t2);
#define RVMODEL_CLEAR_MEXT_INT
#endif
