/* netlist.c: any text as a netlist: refused with a message, or a circuit that passes its checks and prints to a text that
 * reads back as the same text.
 * fuzz: -runs=30000 -max_len=1500 */
#include "../../frontend/ir.h"

#include <stdlib.h>
#include <string.h>

static char *printed(const Circuit *c)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) abort();
    circuit_print(c, f);
    fclose(f);
    return text;
}

/* What a compilation builds lives until the process ends, so leaks mean nothing here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xalloc(size + 1);
    memcpy(text, data, size);
    const char *err = NULL;
    Circuit *c = circuit_parse(text, &err);
    if (!c != (err != NULL)) abort();
    if (!c || circuit_check(c)) return 0;
    char *once = printed(c);
    Circuit *again = circuit_parse(once, &err);
    if (!again) abort();
    char *twice = printed(again);
    if (strcmp(once, twice)) abort();
    free(once);
    free(twice);
    return 0;
}
