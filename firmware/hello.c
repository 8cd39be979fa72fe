/* hello.c: the smallest program that says something, polling the UART as on real hardware.
 * build: -DIO_POLL */
#include "io.h"

int main(void)
{
    put_line("Hello from a RISC-V program running inside a language model.");
    return 0;
}
