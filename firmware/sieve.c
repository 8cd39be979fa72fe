/* sieve.c: Eratosthenes up to 2000; byte stores all over an array. */
#include "io.h"

enum { LIMIT = 2000 };
static uint8_t composite[LIMIT + 1];

int main(void)
{
    uint32_t count = 0, last = 0, sum = 0;
    for (uint32_t i = 2; i <= LIMIT; i++) {
        if (composite[i]) continue;
        count++, last = i, sum += i;
        for (uint32_t j = i + i; j <= LIMIT; j += i) composite[j] = 1;
    }
    put_value("primes", count);
    put_value("largest", last);
    put_value("sum", sum);
    return count == 303 ? 0 : 1;
}
