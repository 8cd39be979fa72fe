/* wide.c: 64-bit integers on a 32-bit machine without a multiplier: the compiler's own routines for products, quotients and shifts. */
#include "io.h"

static void put_wide(const char *name, uint64_t v)
{
    char digits[21];
    int at = 20;
    digits[at] = 0;
    do digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    put_str(name), put_str(": "), put_line(digits + at);
}

static uint64_t isqrt(uint64_t v)
{
    uint64_t root = 0;
    for (uint64_t bit = 1ull << 62; bit; bit >>= 2) {
        if (v >= root + bit) v -= root + bit, root = (root >> 1) + bit;
        else root >>= 1;
    }
    return root;
}

static uint64_t factor(uint64_t n)
{
    for (uint64_t d = 3; d < 90; d += 2)
        if (n % d == 0) return d;
    return n;
}

int main(void)
{
    uint64_t a = 0, b = 1, state = 88172645463325252u;
    for (int i = 0; i < 90; i++) {
        uint64_t next = a + b;
        a = b, b = next;
    }
    put_wide("fibonacci", a);
    uint64_t factorial = 1;
    for (uint64_t i = 2; i <= 20; i++) factorial *= i;
    put_wide("factorial", factorial);
    put_wide("root", isqrt(factorial));
    put_wide("factor", factor(4294967297u * 79u));
    for (int i = 0; i < 20; i++) { /* xorshift of 64 bits, shifts by variable amounts */
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        a += state >> (state & 63);
        b ^= (uint64_t)((int64_t)state >> (i & 63)) << (i / 2);
    }
    put_wide("shifts", a ^ b);
    int64_t sum = 0;
    for (int64_t i = -3; i < 3; i++) sum += (int64_t)state / (i * 1000003 + 7) - (int64_t)state % (i * 77 + 5);
    put_wide("quotients", (uint64_t)sum);
    put_wide("compared", (uint64_t)((sum < 0) + 2 * ((uint64_t)sum > state) + 4 * (sum < (int64_t)state)));
    return 0;
}
