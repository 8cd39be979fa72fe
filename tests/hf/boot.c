/* boot.c: a C program for 4 KiB of memory that works for more than 2,000 tokens: primes, kept in memory, and a line of text.
 * build: -Wl,--defsym=__ram_size=4K -ffunction-sections -Wl,--gc-sections */
#include "io.h"

static uint32_t prime[16];

int main(void)
{
    unsigned n = 0;
    uint32_t sum = 0;
    put_line("Hello from C inside a language model.");
    for (uint32_t k = 2; n < 16; k++) {
        unsigned i = 0;
        for (; i < n; i++) {
            uint32_t left = k;
            while (left >= prime[i]) left -= prime[i];
            if (!left) break;
        }
        if (i == n) prime[n++] = k, sum += k;
    }
    put_char((char)('0' + sum % 8));
    return 42;
}
