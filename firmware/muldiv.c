/* muldiv.c: multiplications and divisions of every kind: digits of pi by a spigot, greatest common divisors, powers modulo a prime,
 * 64-bit products, and the manual's corner cases through volatile operands.
 * build: -march=rv32im_zba
 * needs: m zba */
#include "io.h"

enum { DIGITS = 28, TERMS = DIGITS * 10 / 3 + 2 };

static void pi_digits(void)
{
    static uint32_t term[TERMS];
    int nines = 0, before = 0, first = 1;
    for (int i = 0; i < TERMS; i++) term[i] = 2;
    for (int n = 0; n <= DIGITS; n++) {
        uint32_t carry = 0;
        for (int i = TERMS - 1; i > 0; i--) {
            uint32_t v = 10 * term[i] + carry * (uint32_t)(i + 1);
            term[i] = v % (uint32_t)(2 * i + 1);
            carry = v / (uint32_t)(2 * i + 1);
        }
        uint32_t v = 10 * term[0] + carry;
        term[0] = v % 10;
        uint32_t digit = v / 10;
        if (digit == 9) {
            nines++;
            continue;
        }
        if (!first) put_char((char)('0' + before + (digit == 10)));
        for (; nines; nines--) put_char(digit == 10 ? '0' : '9');
        before = digit == 10 ? 0 : (int)digit;
        first = 0;
    }
    put_char('\n');
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Below 2^16, so that a product fits. */
static uint32_t power(uint32_t base, uint32_t exponent, uint32_t modulus)
{
    uint32_t result = 1;
    for (base %= modulus; exponent; exponent >>= 1, base = base * base % modulus)
        if (exponent & 1) result = result * base % modulus;
    return result;
}

static uint64_t hash64(uint32_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < n; i++) h = (h ^ i) * 0x100000001b3u;
    return h;
}

static volatile int32_t most = INT32_MIN, minus_one = -1, zero = 0, seven = 7, minus_nine = -9;

static void corners(void)
{
    put_hex((uint32_t)(seven / minus_nine), 8), put_char(' ');
    put_hex((uint32_t)(minus_nine / seven), 8), put_char(' ');
    put_hex((uint32_t)(minus_nine % seven), 8), put_char(' ');
    put_hex((uint32_t)(seven % minus_nine), 8), put_char('\n');
    int32_t q, r;
    uint32_t uq, ur;
    __asm__ volatile("div %0, %2, %3\n rem %1, %2, %3" : "=&r"(q), "=&r"(r) : "r"(most), "r"(minus_one)); /* C leaves these open */
    put_hex((uint32_t)q, 8), put_char(' '), put_hex((uint32_t)r, 8), put_char(' ');
    __asm__ volatile("div %0, %2, %3\n rem %1, %2, %3" : "=&r"(q), "=&r"(r) : "r"(minus_nine), "r"(zero));
    put_hex((uint32_t)q, 8), put_char(' '), put_hex((uint32_t)r, 8), put_char(' ');
    __asm__ volatile("divu %0, %2, %3\n remu %1, %2, %3" : "=&r"(uq), "=&r"(ur) : "r"(most), "r"(zero));
    put_hex(uq, 8), put_char(' '), put_hex(ur, 8), put_char('\n');
    int64_t signed_product = (int64_t)most * minus_nine;
    uint64_t product = (uint64_t)(uint32_t)most * (uint32_t)minus_nine;
    put_hex((uint32_t)((uint64_t)signed_product >> 32), 8), put_hex((uint32_t)signed_product, 8), put_char(' ');
    put_hex((uint32_t)(product >> 32), 8), put_hex((uint32_t)product, 8), put_char('\n');
}

int main(void)
{
    pi_digits();
    uint32_t sum = 0, seed = 12345;
    for (int i = 0; i < 60; i++) sum += gcd(next_random(&seed) >> 8, next_random(&seed) >> 10);
    put_value("gcds", sum);
    sum = 0;
    for (uint32_t i = 1; i < 60; i++) sum += power(i, 65519, 65521);
    put_value("powers", sum);
    uint64_t h = hash64(300);
    put_str("hash: "), put_hex((uint32_t)(h >> 32), 8), put_hex((uint32_t)h, 8), put_char('\n');
    corners();
    return 0;
}
