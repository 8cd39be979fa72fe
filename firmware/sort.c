/* sort.c: quicksort of pseudo-random signed words, then a check of order and of the multiset (by sum and xor). */
#include "io.h"

enum { N = 300 };
static int32_t a[N];

static void quicksort(int32_t *lo, int32_t *hi)
{
    while (lo < hi) {
        int32_t pivot = lo[(hi - lo) >> 1], *i = lo, *j = hi;
        while (i <= j) {
            while (*i < pivot) i++;
            while (*j > pivot) j--;
            if (i <= j) {
                int32_t t = *i;
                *i++ = *j;
                *j-- = t;
            }
        }
        if (j - lo < hi - i) {
            quicksort(lo, j);
            lo = i;
        } else {
            quicksort(i, hi);
            hi = j;
        }
    }
}

int main(void)
{
    uint32_t seed = 12345, sum = 0, xor = 0;
    for (int i = 0; i < N; i++) {
        a[i] = (int32_t)next_random(&seed);
        sum += (uint32_t)a[i], xor ^= (uint32_t)a[i];
    }
    quicksort(a, a + N - 1);
    for (int i = 0; i < N; i++) sum -= (uint32_t)a[i], xor ^= (uint32_t)a[i];
    for (int i = 1; i < N; i++)
        if (a[i - 1] > a[i]) return 1;
    if (sum || xor) return 2;
    for (int i = 0; i < N; i += 50) {
        put_int(a[i]);
        put_char('\n');
    }
    put_line("sorted");
    return 0;
}
