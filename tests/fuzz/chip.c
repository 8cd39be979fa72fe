/* chip.c: any bytes as a chip file: refused with a message, or a model whose parts can be looked at. The eight bytes that
 * give the header's length are made here, up to the last brace, so that a change inside the header keeps it readable.
 * fuzz: -max_len=16384 */
#include "../../runtime/runtime.h"

#include <stdlib.h>

static void try_chip(const uint8_t *data, size_t size)
{
    char *err = NULL;
    Model *m = model_parse(data, size, "fuzz.chip", &err);
    if (!m != (err != NULL)) abort();
    free(err);
    if (!m) return;
    for (uint32_t i = 0; i < m->nstates; i++)
        if (model_state(m, m->state[i].name) == NULL) abort();
    model_kind(m, m->start);
    model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8) return 0;
    uint8_t *copy = malloc(size);
    if (!copy) abort();
    memcpy(copy, data, size);
    uint64_t length = 0;
    for (size_t i = 8; i < size; i++)
        if (data[i] == '}') length = i + 1 - 8;
    if (!(data[7] & 1)) memcpy(copy, &length, sizeof length); /* one bit still leaves the length to the fuzzer */
    try_chip(copy, size);
    free(copy);
    return 0;
}
