/* chip.c: any bytes as a chip file: refused with a message, or a model whose parts can be looked at.
 * fuzz: -max_len=65536 */
#include "../../runtime/runtime.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *err = NULL;
    Model *m = model_parse(data, size, "fuzz.chip", &err);
    if (!m != (err != NULL)) abort();
    free(err);
    if (!m) return 0;
    for (uint32_t i = 0; i < m->nstates; i++)
        if (model_state(m, m->state[i].name) == NULL) abort();
    model_kind(m, m->start);
    model_close(m);
    return 0;
}
