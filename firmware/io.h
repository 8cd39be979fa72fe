/* io.h: console and formatting for programs without a C library's stdio. */
#ifndef IO_H
#define IO_H
#include <stdint.h>

#define UART_DATA (*(volatile uint8_t *)0x10000000u)
#define UART_STATUS (*(volatile uint8_t *)0x10000005u) /* bit 5: ready to send; bit 0: a byte has come */

void put_char(char c);
/* Waits for a byte; a CPU with the console extension (rv32im_machine) has them. */
char get_char(void);
void put_str(const char *s);
void put_line(const char *s);
void put_dec(uint32_t n);
void put_int(int32_t n);
/* At least `digits` hexadecimal digits. */
void put_hex(uint32_t n, unsigned digits);
/* "name: value" on a line of its own. */
void put_value(const char *name, uint32_t n);

/* Marsaglia's xorshift: no multiplication. The state must not be 0. */
uint32_t next_random(uint32_t *state);
#endif
