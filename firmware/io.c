/* io.c: see io.h. -DIO_POLL waits for the UART as a program for real hardware must; without it a byte costs one store. */
#include "io.h"

void put_char(char c)
{
#ifdef IO_POLL
    while (!(UART_STATUS & 0x20)) continue;
#endif
    UART_DATA = (uint8_t)c;
}

char get_char(void)
{
    while (!(UART_STATUS & 1)) continue;
    return (char)UART_DATA;
}

void put_str(const char *s)
{
    while (*s) put_char(*s++);
}

void put_line(const char *s)
{
    put_str(s);
    put_char('\n');
}

/* By subtracting powers of ten: RV32I has no divider, and a library division costs hundreds of instructions a digit. */
void put_dec(uint32_t n)
{
    static const uint32_t powers[] = { 1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1 };
    int started = 0;
    for (unsigned i = 0; i < 10; i++) {
        char digit = '0';
        while (n >= powers[i]) n -= powers[i], digit++;
        if (digit != '0' || started || i == 9) put_char(digit), started = 1;
    }
}

void put_int(int32_t n)
{
    if (n < 0) put_char('-');
    put_dec(n < 0 ? -(uint32_t)n : (uint32_t)n);
}

void put_hex(uint32_t n, unsigned digits)
{
    for (int shift = 28; shift >= 0; shift -= 4)
        if ((unsigned)shift < 4 * digits || n >> shift) put_char("0123456789abcdef"[n >> shift & 15]);
}

void put_value(const char *name, uint32_t n)
{
    put_str(name);
    put_str(": ");
    put_dec(n);
    put_char('\n');
}

uint32_t next_random(uint32_t *state)
{
    uint32_t s = *state;
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    return *state = s;
}
