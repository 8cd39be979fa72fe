/* unit/numeric.c: the facts about float32 and bfloat16 that the lowering rests on, as this runtime computes them:
 * rounding, saturation, one-hot norms, pilots. Exhaustive where that is cheap. */
#include "../../runtime/runtime.h"
#include <stdlib.h>

static int failures;
#define CHECK(cond, ...) ((void)((cond) || (failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))))

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static uint32_t to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static bool same(float a, float b) { return to_bits(a) == to_bits(b); }

/* Every bfloat16 stays; between two neighbours the nearer wins, and the even one from the middle. */
static void test_bf16(void)
{
    for (uint32_t h = 0; h < 0x7f80; h++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            uint32_t u = h << 16 | sign << 31, even = (h & 1 ? h + 1 : h) << 16 | sign << 31, up = (h + 1) << 16 | sign << 31;
            CHECK(same(bf16_round(from_bits(u)), from_bits(u)), "%#x", u);
            CHECK(same(bf16_round(from_bits(u + 0x7fff)), from_bits(u)), "%#x", u + 0x7fff);
            CHECK(same(bf16_round(from_bits(u + 0x8000)), from_bits(even)), "%#x", u + 0x8000);
            CHECK(same(bf16_round(from_bits(u + 0x8001)), from_bits(up)), "%#x", u + 0x8001);
        }
    CHECK(isinf(bf16_round(INFINITY)) && isnan(bf16_round(from_bits(0x7f800001))) && isnan(bf16_round(from_bits(0xffffffff))), "inf and NaN");
}

/* The shortcuts of siluf and sigmoidf change no bit: all floats around the two cuts, all bfloat16 values elsewhere. */
static void check_shortcut(uint32_t u)
{
    float x = from_bits(u), s = 1.0f / (1.0f + expf(-x)), y = x / (1.0f + expf(-x));
    CHECK(same(sigmoidf(x), s), "sigmoid(%a)", (double)x);
    CHECK(same(siluf(x), y), "silu(%a)", (double)x);
}

static void test_shortcuts(void)
{
    for (uint32_t u = to_bits(16.5f); u < to_bits(18.0f); u++) check_shortcut(u);
    for (uint32_t u = to_bits(-88.5f); u < to_bits(-90.0f); u++) check_shortcut(u);
    for (uint32_t h = 0; h < 0x7f80; h++) check_shortcut(h << 16), check_shortcut(h << 16 | 0x80000000u);
}

static void test_saturation(void)
{
    CHECK(sigmoidf(16.635532f) == 1 && sigmoidf(16.5f) != 1, "sigmoid reaches 1");
    CHECK(siluf(16.635532f) == 16.635532f && siluf(5.0f) != 5.0f, "silu becomes the identity");
    CHECK(same(siluf(-88.73f), -0.0f) && same(siluf(-128), -0.0f) && same(siluf(-1e30f), -0.0f), "silu reaches -0");
    CHECK(siluf(-64) != 0, "silu(-64) is dust, not 0");
    CHECK(sigmoidf(-88.73f) == 0 && sigmoidf(-88.5f) != 0, "sigmoid reaches 0");
    for (uint32_t h = to_bits(6.25f) >> 16; h < 0x7f80; h++) {
        float x = from_bits(h << 16);
        CHECK(cast(true, sigmoidf(x)) == 1, "bf16 sigmoid(%g)", (double)x);
        CHECK(cast(true, siluf(x)) == x, "bf16 silu(%g)", (double)x);
        if (x >= 89) CHECK(cast(true, sigmoidf(-x)) == 0 && same(cast(true, siluf(-x)), -0.0f), "bf16 at -%g", (double)x);
    }
    CHECK(cast(true, sigmoidf(6.21875f)) != 1 && cast(true, siluf(6.0f)) == 6, "bf16 thresholds");
    CHECK(cast(true, sigmoidf(-22.875f)) == ldexpf(1, -33) && cast(true, sigmoidf(-30.5f)) == ldexpf(1, -44), "bf16 powers of two of sigmoid");
}

/* g = -exp(A_log) softplus(a + dt_bias): the constants for "keep for ever" and "forget all". */
static void test_decay(void)
{
    CHECK(expf(-expf(-20.0f) * softplusf(-100)) == 1, "A_log -20, dt_bias -100 keeps");
    CHECK(expf(-expf(0.0f) * softplusf(-128)) == 1, "-128 keeps");
    CHECK(expf(-expf(0.0f) * softplusf(128)) == 0, "128 forgets");
    CHECK(expf(-expf(10.0f) * softplusf(20)) == 0, "A_log 10, dt_bias 20 forgets");
}

static void test_l2_norm(void)
{
    for (int e = 3; e < 40; e++) {
        float s = ldexpf(1, e);
        CHECK(s * rsqrtf(s * s + 1e-6f) == 1, "one-hot of 2^%d", e);
    }
    CHECK(1.0f * rsqrtf(1.0f + 1e-6f) != 1, "one-hot of 1 is inexact");
    CHECK(0.0f * rsqrtf(1e-6f) == 0, "no hot entry");
    CHECK(1 / sqrtf(4) == 0.5f && 1 / sqrtf(64) == 0.125f && 1 / sqrtf(256) == 0.0625f, "query scales");
}

/* Pilots whose squares sum to the width make the norm an exact change of unit, whatever small data stand beside them. */
static void test_pilots(void)
{
    static const struct {
        uint32_t d;
        float p[4];
    } cases[] = {{64, {8}}, {256, {16}}, {512, {16, 16}}, {640, {16, 16, 8, 8}}, {1024, {32}}, {2560, {48, 16}}, {4096, {64}}, {5120, {64, 32}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t d = cases[k].d;
        float *x = xalloc(d * sizeof *x), *w = xalloc(d * sizeof *w), *y = xalloc(d * sizeof *y);
        for (uint32_t i = 0; i < d; i++) x[i] = (float)((int)(i * 2654435761u >> 23) - 256); /* -256 .. 255 */
        for (uint32_t i = 0; i < 4 && cases[k].p[i] != 0; i++) x[d - 1 - i] = ldexpf(cases[k].p[i], 20);
        for (int bf16 = 0; bf16 < 2; bf16++) {
            rms_norm(bf16, 1e-6f, d, x, w, y);
            for (uint32_t i = 0; i < d; i++) CHECK(y[i] == ldexpf(x[i], -20), "d = %u, bf16 = %d: channel %u: %a", d, bf16, i, (double)y[i]);
        }
    }
}

/* A cell of 128 n beside two pilots of 2^30, read with gain 64, comes out as n times a power of two. */
static void test_gated_norm(void)
{
    for (uint32_t dv = 8; dv <= 128; dv *= 2) {
        float q = 0.125f, pilot = ldexpf(1, 30) * q, sum = 2 * pilot * pilot;
        for (uint32_t i = 2; i < dv; i++) sum += 128 * q * 128 * q;
        float r = rsqrtf(sum / (float)dv + 1e-6f), y = 64 * (128 * q * r);
        int e;
        bool even = (31 - __builtin_clz(dv)) % 2; /* dv / 2 is a power of 4 */
        CHECK(!even || frexpf(y, &e) == 0.5f, "dv = %u: %a", dv, (double)y);
    }
}

int main(void)
{
    test_bf16();
    test_shortcuts();
    test_saturation();
    test_decay();
    test_l2_norm();
    test_pilots();
    test_gated_norm();
    return failures != 0;
}
