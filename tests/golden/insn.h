/* insn.h: how the files of instructions write down an effect and an encoding. */
#ifndef INSN_H
#define INSN_H
#include "golden.h"

/* An effect gets the fields' numbers; imm as the row's format says. */
#define EFFECT(name) \
    static void name(Golden *g, uint32_t rd, uint32_t rs1, uint32_t rs2, uint32_t imm)
#define UNUSED (void)g, (void)rd, (void)rs1, (void)rs2, (void)imm
#define SIGNED(v) ((int32_t)(v))

/* rd = expr of a = rs1, b = rs2 and imm. */
#define COMPUTE(name, expr)                                  \
    EFFECT(name)                                             \
    {                                                        \
        UNUSED;                                              \
        const uint32_t a = g->x[rs1], b = g->x[rs2];         \
        (void)a, (void)b;                                    \
        g->x[rd] = (uint32_t)(expr);                         \
    }
/* funct3 and opcode; with funct7; opcode alone; the whole word. */
#define F3(f3, op) 0x0000707f, (f3) << 12 | (op)
#define F7(f7, f3, op) 0xfe00707f, (uint32_t)(f7) << 25 | (f3) << 12 | (op)
#define OPCODE(op) 0x0000007f, (op)
#define WORD(w) 0xffffffff, (w)
#endif
