/* random64.h: numbers for tests, the same on every machine (splitmix64). A test that counts seeds sets rng itself. */
#ifndef TAPEOUT_RANDOM64_H
#define TAPEOUT_RANDOM64_H
#include <stdint.h>

static uint64_t rng = 1;

static uint64_t random64(void)
{
    rng += 0x9e3779b97f4a7c15ull;
    uint64_t z = rng;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
#endif
