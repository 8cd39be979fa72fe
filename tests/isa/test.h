/* test.h: the macros of the self-checking instruction tests. A test is START, numbered cases, PASS. The first case that
 * is wrong ends the program with its number as the exit code. Registers: gp holds the case number, t6 the
 * expected value; a case may use all others. Without exit codes of their own, faults are tested by the fault-* files. */
#define START           \
    .section .init, "ax"; \
    .globl _start;      \
_start:

/* Runs `code`, then expects `reg` to hold `want`. */
#define CASE(n, reg, want, ...) \
    li gp, n;           \
    __VA_ARGS__;        \
    li t6, want;        \
    beq reg, t6, 77f;   \
    j fail;             \
77:

/* op rd, rs1, rs2: into a third register, then onto either source. */
#define RR(n, op, want, a, b) CASE(n, a2, want, li a0, a; li a1, b; op a2, a0, a1)
#define RR_RD1(n, op, want, a, b) CASE(n, a0, want, li a0, a; li a1, b; op a0, a0, a1)
#define RR_RD2(n, op, want, a, b) CASE(n, a1, want, li a0, a; li a1, b; op a1, a0, a1)
#define RR_SAME(n, op, want, a) CASE(n, a0, want, li a0, a; op a0, a0, a0)
#define RR_X0(n, op, a, b) CASE(n, x0, 0, li a0, a; li a1, b; op x0, a0, a1)
#define RR_RS1X0(n, op, want, b) CASE(n, a2, want, li a1, b; op a2, x0, a1)
#define RR_RS2X0(n, op, want, a) CASE(n, a2, want, li a0, a; op a2, a0, x0)

/* op rd, rs1, imm */
#define RI(n, op, want, a, imm) CASE(n, a2, want, li a0, a; op a2, a0, imm)
#define RI_RD(n, op, want, a, imm) CASE(n, a0, want, li a0, a; op a0, a0, imm)
#define RI_X0(n, op, a, imm) CASE(n, x0, 0, li a0, a; op x0, a0, imm)
#define RI_RS1X0(n, op, want, imm) CASE(n, a2, want, op a2, x0, imm)

/* A branch forward over a poison, and one backward: a2 is 1 when it was taken. */
#define TAKEN 1
#define NOT_TAKEN 0
#define BRANCH(n, op, want, a, b)                                                       \
    CASE(n, a2, want, li a0, a; li a1, b; li a2, 1; op a0, a1, 1f; li a2, 0; 1:)        \
    CASE((n) + 1, a2, want, li a0, a; li a1, b; li a2, 0; j 2f; 1: li a2, 1; j 3f; 2: op a0, a1, 1b; 3:)

#define PASS            \
    li a0, 0;           \
    j finish;           \
fail:                   \
    mv a0, gp;          \
finish:                 \
    li t0, 0x100000;    \
    li t1, 0x5555;      \
    beqz a0, 1f;        \
    slli a0, a0, 16;    \
    li t1, 0x3333;      \
    or t1, t1, a0;      \
1:  sw t1, 0(t0);       \
2:  j 2b
