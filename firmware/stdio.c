/* stdio.c: the C library's streams on our UART, linked only into programs that use them and do not make their own. Reading needs a CPU with the
 * console extension (rv32im_machine). */
#include "io.h"
#include <stdio.h>

static int put(char c, FILE *f)
{
    (void)f;
    put_char(c);
    return c;
}

static int get(FILE *f)
{
    (void)f;
    return (unsigned char)get_char();
}

static FILE uart = FDEV_SETUP_STREAM(put, get, NULL, _FDEV_SETUP_RW);
FILE *const stdin = &uart;
FILE *const stdout = &uart;
FILE *const stderr = &uart;
