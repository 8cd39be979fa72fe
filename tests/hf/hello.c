/* hello.c: what the README's example boots. Only what it calls is linked: every word is a few tokens of prompt.
 * build: -Wl,--defsym=__ram_size=4K -ffunction-sections -Wl,--gc-sections */
#include "io.h"

int main(void)
{
    put_line("Hello from C!");
    return 0;
}
