/* printf.c: the C library's printf on our UART (stdio.c), in all its formats. */
#include <stdint.h>
#include <stdio.h>

int main(void)
{
    printf("%s, %c, %5d|%-5d|%05d\n", "string", 'c', -42, 42, 42);
    printf("%u %x %#X %o\n", 4294967295u, 0xdeadbeefu, 0xbeefu, 511u);
    printf("%lld %llx\n", -1234567890123456789LL, 0x0123456789abcdefULL);
    int n = printf("%.3s|%10s|%-10s|\n", "abcdef", "right", "left");
    printf("%d characters\n", n);
    return 0;
}
