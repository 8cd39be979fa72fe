/* long.c: a long run over changing data: rounds of a stream cipher's quarter steps over 2 KiB, sorted and folded into a hash
 * after each round, so that one wrong bit anywhere changes the last line. About 2.6 million instructions.
 * not: check (the same run again, with a slower one beside it) */
#include "io.h"

enum { WORDS = 512, ROUNDS = 90 };
static uint32_t data[WORDS];

static uint32_t rol(uint32_t x, unsigned n) { return x << n | x >> (32 - n); }

static void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a += *b, *d = rol(*d ^ *a, 16);
    *c += *d, *b = rol(*b ^ *c, 12);
    *a += *b, *d = rol(*d ^ *a, 8);
    *c += *d, *b = rol(*b ^ *c, 7);
}

static void shell_sort(void)
{
    static const unsigned gaps[] = { 132, 57, 23, 10, 4, 1 };
    for (unsigned g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (unsigned gap = gaps[g], i = gap; i < WORDS; i++) {
            uint32_t v = data[i];
            unsigned j = i;
            for (; j >= gap && data[j - gap] > v; j -= gap) data[j] = data[j - gap];
            data[j] = v;
        }
}

static uint32_t fold(void)
{
    uint32_t hash = 2166136261u;
    const uint8_t *p = (const uint8_t *)data;
    for (unsigned i = 0; i < sizeof data; i += 5) hash = (hash ^ p[i]) + (hash << 1) + (hash << 4) + rol(hash, 24);
    return hash;
}

int main(void)
{
    uint32_t seed = 1, hash = 0;
    for (unsigned i = 0; i < WORDS; i++) data[i] = next_random(&seed);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < WORDS; i += 4) quarter(&data[i], &data[i + 1], &data[i + 2], &data[i + 3]);
        for (unsigned i = 0; i < WORDS / 4; i++) quarter(&data[i], &data[i + 128], &data[i + 256], &data[i + 384]);
        if (round % 4 == 3) shell_sort();
        data[0] ^= hash = rol(hash, 1) ^ fold();
        if (round % 10 == 9) {
            put_hex(hash, 8);
            put_char('\n');
        }
    }
    return 0;
}
