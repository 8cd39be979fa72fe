/* a.c: the A extension on one hart: nothing comes between the read and the write of an AMO, and the only ways to lose a
 * reservation are another lr.w and an sc.w. Atomics reach words of RAM only; aq and rl order nothing here. */
#include "insn.h"

EFFECT(do_lr)
{
    (void)rs2, (void)imm;
    uint32_t addr = g->x[rs1];
    if (!golden_atomic(g, addr, false)) return;
    g->reserved = addr;
    g->x[rd] = golden_load(g, addr, 4);
}

EFFECT(do_sc)
{
    (void)imm;
    uint32_t addr = g->x[rs1], value = g->x[rs2];
    if (!golden_atomic(g, addr, true)) return;
    bool hit = g->reserved == addr;
    g->reserved = 1; /* no word's address */
    if (hit) golden_store(g, addr, value, 4);
    g->x[rd] = !hit;
}

/* rd = the word; the word = expr of a = its contents and b = rs2. */
#define AMO(name, expr)                                       \
    EFFECT(name)                                              \
    {                                                         \
        (void)imm;                                            \
        const uint32_t addr = g->x[rs1], b = g->x[rs2];       \
        (void)b;                                              \
        if (!golden_atomic(g, addr, true)) return;            \
        const uint32_t a = golden_load(g, addr, 4);           \
        golden_store(g, addr, (uint32_t)(expr), 4);           \
        g->x[rd] = a;                                         \
    }
AMO(do_amoswap, b)
AMO(do_amoadd, a + b)
AMO(do_amoxor, a ^ b)
AMO(do_amoand, a & b)
AMO(do_amoor, a | b)
AMO(do_amomin, SIGNED(a) < SIGNED(b) ? a : b)
AMO(do_amomax, SIGNED(a) > SIGNED(b) ? a : b)
AMO(do_amominu, a < b ? a : b)
AMO(do_amomaxu, a > b ? a : b)

/* funct5; bits 26 and 25 (aq, rl) are free. */
#define F5(f5) 0xf800707f, (uint32_t)(f5) << 27 | 2 << 12 | 0x2f

const GoldenInsn golden_a[] = {
    { "lr.w", 0xf9f0707f, 2u << 27 | 2 << 12 | 0x2f, FMT_R, do_lr },
    { "sc.w", F5(3), FMT_R, do_sc },
    { "amoswap.w", F5(1), FMT_R, do_amoswap },
    { "amoadd.w", F5(0), FMT_R, do_amoadd },
    { "amoxor.w", F5(4), FMT_R, do_amoxor },
    { "amoand.w", F5(12), FMT_R, do_amoand },
    { "amoor.w", F5(8), FMT_R, do_amoor },
    { "amomin.w", F5(16), FMT_R, do_amomin },
    { "amomax.w", F5(20), FMT_R, do_amomax },
    { "amominu.w", F5(24), FMT_R, do_amominu },
    { "amomaxu.w", F5(28), FMT_R, do_amomaxu },
    { 0 },
};
