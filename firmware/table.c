/* table.c: printf as a program for a hosted machine writes it: the streams are those of stdio.c.
 * build: -march=rv32im
 * needs: m */
#include <stdio.h>

int main(void)
{
    for (int i = 1; i <= 5; i++)
        for (int j = 1; j <= 5; j++) printf("%4d%s", i * j, j < 5 ? "" : "\n");
    fprintf(stderr, "%d rows\n", 5);
    return 0;
}
