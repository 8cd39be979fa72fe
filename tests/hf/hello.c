/* hello.c: what example.py boots.
 * build: -Wl,--defsym=__ram_size=4K */
#include "io.h"

int main(void)
{
    put_line("Hello from C!");
    return 0;
}
