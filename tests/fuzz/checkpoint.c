/* checkpoint.c: any bytes as a checkpoint: config.json, a NUL byte, a file of weights: refused with a message, or a model that takes some tokens. The eight
 * bytes that give the length of the weights' header are made here, as in chip.c.
 * fuzz: -max_len=16384 */
#include "../../runtime/stock.h"

#include <stdlib.h>

static void feed(const Checkpoint *k)
{
    char *err = NULL;
    uint32_t next = 0;
    void *self = stock_dense_backend.open(k, 2, 0, &err);
    if (!self && !err) abort();
    if (self) {
        for (int i = 0; i < 3 && !err; i++)
            if (stock_dense_backend.feed(self, (uint32_t[]){next, 0}, 2, NULL, &next, &err) == (err != NULL)) abort();
        stock_dense_backend.close(self);
    }
    free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    Checkpoint k;
    char *err = NULL;
    if (!end || data + size - end - 1 < 8) return 0;
    size_t nconfig = (size_t)(end - data), nweights = size - nconfig - 1;
    uint8_t *weights = malloc(nweights);
    if (!weights) abort();
    memcpy(weights, end + 1, nweights);
    uint64_t length = 0;
    for (size_t i = 8; i + 1 < nweights; i++)
        if (weights[i] == '}' && weights[i - 1] == '}') length = i + 1 - 8;
    if (!(weights[7] & 1)) memcpy(weights, &length, sizeof length);
    bool ok = checkpoint_parse(&k, (const char *)data, nconfig, weights, nweights, &err);
    if (ok != (err == NULL)) abort();
    free(err);
    if (ok) feed(&k);
    checkpoint_close(&k);
    free(weights);
    return 0;
}
