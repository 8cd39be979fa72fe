/* calc.c: reads sums from the console, such as 12+30-2, and answers each line; a line with a dot ends it.
 * build: -march=rv32im
 * needs: m console */
#include "io.h"

/* One term; the byte behind it goes to *end. */
static int32_t number(char *end)
{
    int32_t n = 0;
    char c = get_char();
    for (; c >= '0' && c <= '9'; c = get_char()) n = 10 * n + (c - '0');
    *end = c;
    return n;
}

int main(void)
{
    for (;;) {
        char op = '+', next;
        int32_t sum = 0;
        do {
            int32_t n = number(&next);
            sum = op == '-' ? sum - n : op == '*' ? sum * n : sum + n;
            op = next;
        } while (op == '+' || op == '-' || op == '*');
        if (op == '.') break;
        put_int(sum);
        put_char('\n');
    }
    put_line("bye");
    return 0;
}
