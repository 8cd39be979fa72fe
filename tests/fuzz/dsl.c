/* dsl.c: any text at all through lexer, grammar and checks: errors are printed (to nowhere), nothing crashes or hangs.
 * The memory of a compilation is never freed, hence the limit on runs.
 * fuzz: -runs=30000 -max_len=1500 */
#include "../../dsl/dsl.h"

#include <stdlib.h>
#include <string.h>

/* What a compilation builds lives until the process ends, so leaks mean nothing here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!diag_out) diag_out = fopen("/dev/null", "w");
    char *text = xalloc(size + 1);
    memcpy(text, data, size);
    uint32_t root;
    NodeList *decls = program_parse_text("fuzz.ckt", text, size, &root);
    if (decls && error_count() == 0) program_check(decls, root);
    diag_reset();
    return 0;
}
