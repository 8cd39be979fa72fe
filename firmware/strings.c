/* strings.c: the C library's string functions, which move bytes and words at every alignment; each result is checked. */
#include "io.h"
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(const char *what, int ok)
{
    put_str(what);
    put_line(ok ? ": ok" : ": WRONG");
    failures += !ok;
}

static int moves_work(void)
{
    static char buffer[64], expect[64];
    for (unsigned from = 0; from < 4; from++)
        for (unsigned to = 0; to < 8; to++) {
            for (unsigned i = 0; i < sizeof buffer; i++) buffer[i] = expect[i] = (char)(i * 7 + 3);
            for (unsigned i = 0; i < 13; i++) expect[to + i] = (char)((from + i) * 7 + 3);
            memmove(buffer + to, buffer + from, 13);
            if (memcmp(buffer, expect, sizeof buffer)) return 0;
        }
    return 1;
}

static int sets_work(void)
{
    static char buffer[40];
    for (unsigned n = 0; n < 12; n++) {
        memset(buffer, 'x', sizeof buffer);
        memset(buffer + 5, 'y', n);
        for (unsigned i = 0; i < sizeof buffer; i++)
            if (buffer[i] != (i >= 5 && i < 5 + n ? 'y' : 'x')) return 0;
    }
    return 1;
}

int main(void)
{
    char text[48];
    strcpy(text, "firmware");
    strcat(text, " in ");
    strcat(text, "weights");
    check(text, strlen(text) == 19);
    check("strcmp", strcmp("abc", "abd") < 0 && strcmp("b", "a") > 0 && strcmp(text, text) == 0);
    check("strncmp", strncmp("abcx", "abcy", 3) == 0 && strncmp("abcx", "abcy", 4) < 0);
    check("strchr", strchr(text, 'w') == text + 4 && strrchr(text, 'w') == text + 12 && !strchr(text, 'z'));
    check("strstr", strstr(text, "in") == text + 9 && !strstr(text, "out"));
    check("memchr", memchr(text, 't', 19) == text + 17);
    check("memmove", moves_work());
    check("memset", sets_work());
    check("strtol", strtol("-7fff", NULL, 16) == -0x7fff && strtol("1234567", NULL, 10) == 1234567);
    return failures;
}
