/* rv32i.c: the 40 instructions of RV32I for the golden interpreter, one row each: name, mask, match, operands, effect.
 * A branch's or jump's target must be a multiple of four: there is no C extension here. */
#include "insn.h"

COMPUTE(do_addi, a + imm)
COMPUTE(do_slti, SIGNED(a) < SIGNED(imm))
COMPUTE(do_sltiu, a < imm)
COMPUTE(do_xori, a ^ imm)
COMPUTE(do_ori, a | imm)
COMPUTE(do_andi, a & imm)
COMPUTE(do_slli, a << imm)
COMPUTE(do_srli, a >> imm)
COMPUTE(do_srai, SIGNED(a) >> imm)
COMPUTE(do_lui, imm)
COMPUTE(do_auipc, g->pc + imm)
COMPUTE(do_add, a + b)
COMPUTE(do_sub, a - b)
COMPUTE(do_sll, a << (b & 31))
COMPUTE(do_slt, SIGNED(a) < SIGNED(b))
COMPUTE(do_sltu, a < b)
COMPUTE(do_xor, a ^ b)
COMPUTE(do_srl, a >> (b & 31))
COMPUTE(do_sra, SIGNED(a) >> (b & 31))
COMPUTE(do_or, a | b)
COMPUTE(do_and, a & b)

#define BRANCH(name, cond)                                   \
    EFFECT(name)                                             \
    {                                                        \
        (void)rd;                                            \
        const uint32_t a = g->x[rs1], b = g->x[rs2];         \
        if (cond) golden_jump(g, g->pc + imm);               \
    }
BRANCH(do_beq, a == b)
BRANCH(do_bne, a != b)
BRANCH(do_blt, SIGNED(a) < SIGNED(b))
BRANCH(do_bge, SIGNED(a) >= SIGNED(b))
BRANCH(do_bltu, a < b)
BRANCH(do_bgeu, a >= b)

/* A jump whose target faults leaves rd alone. */
static void jump_link(Golden *g, uint32_t rd, uint32_t target)
{
    golden_jump(g, target);
    if (golden_ok(g)) g->x[rd] = g->pc + 4;
}
EFFECT(do_jal)
{
    UNUSED;
    jump_link(g, rd, g->pc + imm);
}
EFFECT(do_jalr)
{
    UNUSED;
    jump_link(g, rd, (g->x[rs1] + imm) & ~1u);
}

#define LOAD(name, size, type)                                          \
    EFFECT(name)                                                        \
    {                                                                   \
        (void)rs2;                                                      \
        uint32_t v = golden_load(g, g->x[rs1] + imm, size);             \
        if (golden_ok(g)) g->x[rd] = (uint32_t)(type)v;   \
    }
LOAD(do_lb, 1, int8_t)
LOAD(do_lh, 2, int16_t)
LOAD(do_lw, 4, uint32_t)
LOAD(do_lbu, 1, uint8_t)
LOAD(do_lhu, 2, uint16_t)

#define STORE(name, size)                                               \
    EFFECT(name)                                                        \
    {                                                                   \
        (void)rd;                                                       \
        golden_store(g, g->x[rs1] + imm, g->x[rs2], size);              \
    }
STORE(do_sb, 1)
STORE(do_sh, 2)
STORE(do_sw, 4)

EFFECT(do_fence) { UNUSED; } /* one hart, in order: nothing to wait for */
EFFECT(do_ecall)
{
    UNUSED;
    if (g->x[17] == 93 && !golden_has_handler(g)) golden_exit(g, g->x[10]); /* Linux's exit(a0) */
    else golden_fault(g, FAULT_ECALL, 0);
}
EFFECT(do_ebreak)
{
    UNUSED;
    golden_fault(g, FAULT_BREAKPOINT, 0);
}

const GoldenInsn golden_rv32i[] = {
    { "addi", F3(0, 0x13), FMT_I, do_addi },
    { "slti", F3(2, 0x13), FMT_I, do_slti },
    { "sltiu", F3(3, 0x13), FMT_I, do_sltiu },
    { "xori", F3(4, 0x13), FMT_I, do_xori },
    { "ori", F3(6, 0x13), FMT_I, do_ori },
    { "andi", F3(7, 0x13), FMT_I, do_andi },
    { "slli", F7(0x00, 1, 0x13), FMT_SHIFT, do_slli },
    { "srli", F7(0x00, 5, 0x13), FMT_SHIFT, do_srli },
    { "srai", F7(0x20, 5, 0x13), FMT_SHIFT, do_srai },
    { "lui", OPCODE(0x37), FMT_U, do_lui },
    { "auipc", OPCODE(0x17), FMT_U, do_auipc },
    { "add", F7(0x00, 0, 0x33), FMT_R, do_add },
    { "sub", F7(0x20, 0, 0x33), FMT_R, do_sub },
    { "sll", F7(0x00, 1, 0x33), FMT_R, do_sll },
    { "slt", F7(0x00, 2, 0x33), FMT_R, do_slt },
    { "sltu", F7(0x00, 3, 0x33), FMT_R, do_sltu },
    { "xor", F7(0x00, 4, 0x33), FMT_R, do_xor },
    { "srl", F7(0x00, 5, 0x33), FMT_R, do_srl },
    { "sra", F7(0x20, 5, 0x33), FMT_R, do_sra },
    { "or", F7(0x00, 6, 0x33), FMT_R, do_or },
    { "and", F7(0x00, 7, 0x33), FMT_R, do_and },
    { "jal", OPCODE(0x6f), FMT_J, do_jal },
    { "jalr", F3(0, 0x67), FMT_I, do_jalr },
    { "beq", F3(0, 0x63), FMT_B, do_beq },
    { "bne", F3(1, 0x63), FMT_B, do_bne },
    { "blt", F3(4, 0x63), FMT_B, do_blt },
    { "bge", F3(5, 0x63), FMT_B, do_bge },
    { "bltu", F3(6, 0x63), FMT_B, do_bltu },
    { "bgeu", F3(7, 0x63), FMT_B, do_bgeu },
    { "lb", F3(0, 0x03), FMT_I, do_lb },
    { "lh", F3(1, 0x03), FMT_I, do_lh },
    { "lw", F3(2, 0x03), FMT_I, do_lw },
    { "lbu", F3(4, 0x03), FMT_I, do_lbu },
    { "lhu", F3(5, 0x03), FMT_I, do_lhu },
    { "sb", F3(0, 0x23), FMT_S, do_sb },
    { "sh", F3(1, 0x23), FMT_S, do_sh },
    { "sw", F3(2, 0x23), FMT_S, do_sw },
    { "fence", F3(0, 0x0f), FMT_I, do_fence }, /* its other fields are hints that an implementation must ignore */
    { "ecall", WORD(0x00000073), FMT_R, do_ecall },
    { "ebreak", WORD(0x00100073), FMT_R, do_ebreak },
    { 0 },
};
