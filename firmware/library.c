/* library.c: the C library on a bare machine: formatting and reading, sorting with a function, strings, jumps out of a recursion, and a heap. */
#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf out;

static int down(int n, int stop)
{
    if (n == stop) longjmp(out, 42);
    return n ? down(n - 1, stop) + 1 : 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void sorted_words(void)
{
    static char text[8][12];
    char *word[8];
    uint32_t r = 1;
    for (int i = 0; i < 8; i++) {
        r = r * 1103515245u + 12345u;
        snprintf(text[i], sizeof text[i], "%x-%d", (unsigned)(r >> 16) & 0xff, i);
        word[i] = text[i];
    }
    qsort(word, 8, sizeof *word, by_text);
    for (int i = 0; i < 8; i++) printf("%-6s%s", word[i], i % 4 == 3 ? "\n" : "|");
}

static void numbers(void)
{
    char *rest;
    long a = strtol("-0x7fZ", &rest, 0);
    printf("%ld '%s' %lu\n", a, rest, strtoul("4294967295", NULL, 10));
    long most = strtol("99999999999", NULL, 10);
    printf("%ld %d\n", most, errno == ERANGE);
    printf("%5d|%-5d|%+.3d|%#x|%c|%%\n", -37, 37, 7, 0xbeefu, 'z');
    printf("%llx %lld\n", 0x123456789abcdefull, -1234567890123ll);
}

/* Blocks are written full, freed in another order, and must not have met. */
static int heap(void)
{
    uint8_t *block[6];
    int wrong = 0;
    for (int i = 0; i < 6; i++) {
        if (!(block[i] = malloc(24 + 40 * (size_t)i))) return -1;
        memset(block[i], i + 1, 24 + 40 * (size_t)i);
    }
    for (int i = 0; i < 6; i += 2) free(block[i]);
    if (!(block[5] = realloc(block[5], 600))) return -1;
    for (int i = 1; i < 6; i += 2)
        for (int k = 0; k < 24 + 40 * i; k++) wrong += block[i][k] != i + 1;
    return wrong;
}

int main(void)
{
    char line[] = "the quick, brown;fox";
    sorted_words();
    numbers();
    for (char *t = strtok(line, " ,;"); t; t = strtok(NULL, " ,;")) printf("[%s]", t);
    int k = setjmp(out);
    printf("\n%d\n", k ? k : down(9, 2));
    int a, b, n = sscanf("12 0x1f", "%d %i", &a, &b);
    printf("%d %d %d\n", n, a, b);
    printf("%d %d\n", heap(), malloc(1 << 20) == NULL);
    return 0;
}
