/* recurse.c: Fibonacci, Ackermann and the towers of Hanoi, each by plain recursion: the stack at work.
 * build: -fno-optimize-sibling-calls -fno-inline */
#include "io.h"

static uint32_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static uint32_t ackermann(uint32_t m, uint32_t n)
{
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

static uint32_t hanoi(uint32_t n, char from, char to, char via)
{
    return n == 0 ? 0 : hanoi(n - 1, from, via, to) + 1 + hanoi(n - 1, via, to, from);
}

int main(void)
{
    put_value("fib(14)", fib(14));
    put_value("ackermann(2, 6)", ackermann(2, 6));
    put_value("hanoi(8)", hanoi(8, 'a', 'b', 'c'));
    return 0;
}
