/* float.c: floating point without a unit for it: the compiler's routines for float and double, and some of the C library's functions.
 * Results are printed as their bits, which IEEE 754 fixes; those of sinf as a rounded decimal. */
#include "io.h"
#include <math.h>
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static void put_bits(const char *name, float f)
{
    put_str(name), put_str(": "), put_hex(bits_of(f), 8), put_char('\n');
}

static float root(float v)
{
    float x = v;
    for (int i = 0; i < 6; i++) x = 0.5f * (x + v / x);
    return x;
}

static int escapes(float re, float im)
{
    float x = 0, y = 0;
    int n = 0;
    while (n < 6 && x * x + y * y < 4.0f) {
        float t = x * x - y * y + re;
        y = 2 * x * y + im;
        x = t;
        n++;
    }
    return n;
}

static void mandelbrot(void)
{
    for (int row = 0; row < 2; row++) {
        for (int column = 0; column < 16; column++) put_char(" .:-=+@"[escapes((float)column * 0.2f - 2.25f, (float)row * 0.7f)]);
        put_char('\n');
    }
}

int main(void)
{
    put_bits("root", root(2.0f));
    float series = 0;
    for (int i = 1; i < 20; i++) series += 1.0f / (float)(i * i);
    put_bits("series", series);
    double e = 1, term = 1;
    for (int i = 1; i < 11; i++) e += term /= i;
    uint64_t u;
    memcpy(&u, &e, 8);
    put_str("e: "), put_hex((uint32_t)(u >> 32), 8), put_hex((uint32_t)u, 8), put_char('\n');
    put_str("rounded: "), put_int((int32_t)(-e * 1000.0 - 0.5)), put_char('\n');
    float tiny = 1e-38f, huge = 3e38f;
    put_bits("subnormal", tiny / 64.0f);
    put_bits("infinite", huge * 10.0f);
    put_bits("compared", (float)((huge > tiny) + 2 * (tiny == tiny) + 4 * (huge - huge / 3 < huge)));
    put_str("sine: "), put_int((int32_t)lrintf(sinf(1.0f) * 100000.0f)), put_char('\n');
    mandelbrot();
    return 0;
}
