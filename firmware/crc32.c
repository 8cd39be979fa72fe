/* crc32.c: the reflected CRC-32, once bit by bit and once by a table made at run time; both must agree. */
#include "io.h"
#include <string.h>

static uint32_t table[256];

static uint32_t step_bits(uint32_t crc, unsigned n)
{
    while (n--) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    return crc;
}

static uint32_t crc_bits(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) crc = step_bits(crc ^ p[i], 8);
    return ~crc;
}

static uint32_t crc_table(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

int main(void)
{
    static const char *const texts[] = {
        "", "a", "123456789", "The quick brown fox jumps over the lazy dog",
        "Gates and registers, one after the other, written down as the weights of a network.",
    };
    for (unsigned i = 0; i < 256; i++) table[i] = step_bits(i, 8);
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        const uint8_t *p = (const uint8_t *)texts[i];
        uint32_t crc = crc_table(p, strlen(texts[i]));
        if (crc != crc_bits(p, strlen(texts[i]))) return 1;
        put_hex(crc, 8);
        put_char(' ');
        put_line(texts[i]);
    }
    return crc_table((const uint8_t *)texts[2], 9) == 0xcbf43926u ? 0 : 2;
}
