/* m.c: the M extension, integer multiplication and division. No case traps: division by zero gives all ones and leaves the
 * dividend as the remainder; the one overflow, -2^31 / -1, gives -2^31 and remainder 0. */
#include "insn.h"

static uint32_t high(int64_t product) { return (uint32_t)((uint64_t)product >> 32); }
static int64_t wide(uint32_t v) { return (int32_t)v; }

static uint32_t quotient(uint32_t a, uint32_t b)
{
    if (b == 0) return 0xffffffff;
    return (uint32_t)(wide(a) / wide(b));
}

static uint32_t rest(uint32_t a, uint32_t b)
{
    if (b == 0) return a;
    return (uint32_t)(wide(a) % wide(b));
}

COMPUTE(do_mul, a * b)
COMPUTE(do_mulh, high(wide(a) * wide(b)))
COMPUTE(do_mulhsu, high(wide(a) * (int64_t)b))
COMPUTE(do_mulhu, (uint64_t)a * b >> 32)
COMPUTE(do_div, quotient(a, b))
COMPUTE(do_divu, b ? a / b : 0xffffffff)
COMPUTE(do_rem, rest(a, b))
COMPUTE(do_remu, b ? a % b : a)

const GoldenInsn golden_m[] = {
    { "mul", F7(1, 0, 0x33), FMT_R, do_mul },
    { "mulh", F7(1, 1, 0x33), FMT_R, do_mulh },
    { "mulhsu", F7(1, 2, 0x33), FMT_R, do_mulhsu },
    { "mulhu", F7(1, 3, 0x33), FMT_R, do_mulhu },
    { "div", F7(1, 4, 0x33), FMT_R, do_div },
    { "divu", F7(1, 5, 0x33), FMT_R, do_divu },
    { "rem", F7(1, 6, 0x33), FMT_R, do_rem },
    { "remu", F7(1, 7, 0x33), FMT_R, do_remu },
    { 0 },
};
