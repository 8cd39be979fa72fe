/* bits.c: Zba (address generation) and Zbb (basic bit manipulation) for RV32. */
#include "insn.h"

COMPUTE(do_sh1add, (a << 1) + b)
COMPUTE(do_sh2add, (a << 2) + b)
COMPUTE(do_sh3add, (a << 3) + b)

const GoldenInsn golden_zba[] = {
    { "sh1add", F7(0x10, 2, 0x33), FMT_R, do_sh1add },
    { "sh2add", F7(0x10, 4, 0x33), FMT_R, do_sh2add },
    { "sh3add", F7(0x10, 6, 0x33), FMT_R, do_sh3add },
    { 0 },
};

static uint32_t rotate_right(uint32_t v, uint32_t n)
{
    n &= 31;
    return n ? v >> n | v << (32 - n) : v;
}

static uint32_t leading_zeros(uint32_t v)
{
    uint32_t n = 0;
    while (n < 32 && !(v >> (31 - n) & 1)) n++;
    return n;
}

static uint32_t trailing_zeros(uint32_t v)
{
    uint32_t n = 0;
    while (n < 32 && !(v >> n & 1)) n++;
    return n;
}

static uint32_t ones(uint32_t v)
{
    uint32_t n = 0;
    for (; v; v >>= 1) n += v & 1;
    return n;
}

/* Each byte all ones where it is not 0. */
static uint32_t or_combine(uint32_t v)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < 32; i += 8)
        if (v >> i & 255) out |= 255u << i;
    return out;
}

static uint32_t reverse_bytes(uint32_t v) { return v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24; }

COMPUTE(do_andn, a & ~b)
COMPUTE(do_orn, a | ~b)
COMPUTE(do_xnor, ~(a ^ b))
COMPUTE(do_clz, leading_zeros(a))
COMPUTE(do_ctz, trailing_zeros(a))
COMPUTE(do_cpop, ones(a))
COMPUTE(do_max, SIGNED(a) > SIGNED(b) ? a : b)
COMPUTE(do_maxu, a > b ? a : b)
COMPUTE(do_min, SIGNED(a) < SIGNED(b) ? a : b)
COMPUTE(do_minu, a < b ? a : b)
COMPUTE(do_sext_b, (int8_t)a)
COMPUTE(do_sext_h, (int16_t)a)
COMPUTE(do_zext_h, a & 0xffff)
COMPUTE(do_rol, rotate_right(a, 0u - b))
COMPUTE(do_ror, rotate_right(a, b))
COMPUTE(do_rori, rotate_right(a, imm))
COMPUTE(do_orc_b, or_combine(a))
COMPUTE(do_rev8, reverse_bytes(a))

/* One operand: the field rs2 is part of the encoding. */
#define UNARY(f7, f5, f3, op) 0xfff0707f, (uint32_t)(f7) << 25 | (f5) << 20 | (f3) << 12 | (op)

const GoldenInsn golden_zbb[] = {
    { "andn", F7(0x20, 7, 0x33), FMT_R, do_andn },
    { "orn", F7(0x20, 6, 0x33), FMT_R, do_orn },
    { "xnor", F7(0x20, 4, 0x33), FMT_R, do_xnor },
    { "clz", UNARY(0x30, 0, 1, 0x13), FMT_R, do_clz },
    { "ctz", UNARY(0x30, 1, 1, 0x13), FMT_R, do_ctz },
    { "cpop", UNARY(0x30, 2, 1, 0x13), FMT_R, do_cpop },
    { "max", F7(0x05, 6, 0x33), FMT_R, do_max },
    { "maxu", F7(0x05, 7, 0x33), FMT_R, do_maxu },
    { "min", F7(0x05, 4, 0x33), FMT_R, do_min },
    { "minu", F7(0x05, 5, 0x33), FMT_R, do_minu },
    { "sext.b", UNARY(0x30, 4, 1, 0x13), FMT_R, do_sext_b },
    { "sext.h", UNARY(0x30, 5, 1, 0x13), FMT_R, do_sext_h },
    { "zext.h", UNARY(0x04, 0, 4, 0x33), FMT_R, do_zext_h },
    { "rol", F7(0x30, 1, 0x33), FMT_R, do_rol },
    { "ror", F7(0x30, 5, 0x33), FMT_R, do_ror },
    { "rori", F7(0x30, 5, 0x13), FMT_SHIFT, do_rori },
    { "orc.b", UNARY(0x14, 7, 5, 0x13), FMT_R, do_orc_b },
    { "rev8", UNARY(0x34, 24, 5, 0x13), FMT_R, do_rev8 },
    { 0 },
};
