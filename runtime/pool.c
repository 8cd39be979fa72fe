/* pool.c: memory that is freed with its owner, and error messages. Every allocation is a block of its own, so that
 * a sanitizer sees each array's true bounds; there are thousands of them at most. */
#include "runtime.h"
#include <stdarg.h>
#include <stdlib.h>

enum { ALIGN = 64 };

typedef struct PoolBlock {
    struct PoolBlock *next;
} PoolBlock;
struct Pool {
    PoolBlock *blocks;
};

Pool *pool_new(void)
{
    return memset(xrealloc(NULL, sizeof(Pool)), 0, sizeof(Pool));
}

void *pool_alloc(Pool *p, size_t bytes)
{
    /* calloc, so that the pages of a large state array cost nothing until they are written */
    PoolBlock *b = bytes > SIZE_MAX - 2 * ALIGN ? NULL : calloc(1, bytes + 2 * ALIGN);
    if (!b) die("out of memory (%zu bytes)", bytes);
    b->next = p->blocks;
    p->blocks = b;
    return (void *)(((uintptr_t)(b + 1) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
}

void *pool_array(Pool *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) die("array of %zu * %zu bytes", n, size);
    return pool_alloc(p, n * size);
}

char *pool_str(Pool *p, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(pool_alloc(p, n), s, n);
}

void pool_free(Pool *p)
{
    if (!p) return;
    for (PoolBlock *b = p->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(p);
}

bool fail(char **err, const char *fmt, ...)
{
    if (!err) return false;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    *err = xrealloc(NULL, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(*err, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return false;
}
