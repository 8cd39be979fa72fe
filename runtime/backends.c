/* backends.c: the table of back ends. The first is the default; what a build or a machine does not have says so when it is opened. */
#include "runtime.h"

const Backend *const backends[] = {&sparse_backend, &adaptive_backend, &dense_backend, &cuda_backend, &cuda_host_backend, &cuda_dense_backend, &cuda_host_dense_backend, NULL};

const Backend *backend_find(const char *name)
{
    for (const Backend *const *b = backends; *b; b++)
        if (!name || strcmp((*b)->name, name) == 0) return *b;
    return NULL;
}
