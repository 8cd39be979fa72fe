/* backends.c: the table of back ends. The first is the default. The build defines HAVE_CUDA where it found a compiler. */
#include "runtime.h"

#ifdef HAVE_CUDA
extern const Backend cuda_backend;
#endif

const Backend *const backends[] = {
    &sparse_backend,
    &dense_backend,
#ifdef HAVE_CUDA
    &cuda_backend,
#endif
    NULL,
};

const Backend *backend_find(const char *name)
{
    for (const Backend *const *b = backends; *b; b++)
        if (!name || strcmp((*b)->name, name) == 0) return *b;
    return NULL;
}
