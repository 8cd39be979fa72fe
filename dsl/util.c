/* util.c: arenas, growable arrays, interning and `die` of util.h. */
#include "util.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void die_(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s:%d: internal error: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}

/* Blocks are chained so that leak checkers see everything as reachable. Those of arenas that were dropped wait, zeroed, for the next one: fresh
 * pages from the system cost more than that. */
typedef struct Block {
    struct Block *next;
    size_t used, size;
    _Alignas(16) char mem[];
} Block;
struct Arena {
    Block *blocks;
};
enum { BLOCK = 1 << 20 };
static Arena lasting, *current = &lasting;
static Block *spare;

static Block *block_new(size_t bytes)
{
    if (spare && bytes <= BLOCK) {
        Block *b = spare;
        spare = b->next;
        return b;
    }
    size_t size = bytes > BLOCK ? bytes : BLOCK;
    Block *b = calloc(1, sizeof *b + size);
    if (!b) die("out of memory (%zu bytes)", size);
    b->size = size;
    return b;
}

static void *arena_alloc(Arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->blocks || a->blocks->size - a->blocks->used < bytes) {
        Block *b = block_new(bytes);
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = a->blocks->mem + a->blocks->used;
    a->blocks->used += bytes;
    return p;
}

void *xalloc(size_t bytes) { return arena_alloc(current, bytes); }

Arena *arena_new(void) { return memset(xrealloc(NULL, sizeof(Arena)), 0, sizeof(Arena)); }

Arena *arena_use(Arena *a)
{
    Arena *old = current;
    current = a ? a : &lasting;
    return old;
}

void arena_free(Arena *a)
{
    for (Block *b = a ? a->blocks : NULL, *next; b; b = next) {
        next = b->next;
        if (b->size != BLOCK) {
            free(b);
            continue;
        }
        memset(b->mem, 0, b->used);
        b->used = 0;
        b->next = spare;
        spare = b;
    }
    free(a);
}

void *xrealloc(void *p, size_t bytes)
{
    p = realloc(p, bytes ? bytes : 1);
    if (!p) die("out of memory (%zu bytes)", bytes);
    return p;
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xalloc(n), s, n);
}

char *xfmt(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = xalloc((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

/* Open addressing over FNV-1a; the table doubles at half load. */
static struct {
    const char **slot;
    size_t n, cap;
} names;

static size_t name_slot(const char *s, size_t n)
{
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211ull;
    size_t i = h & (names.cap - 1);
    while (names.slot[i] && (strncmp(names.slot[i], s, n) != 0 || names.slot[i][n])) i = (i + 1) & (names.cap - 1);
    return i;
}

static void names_rehash(void)
{
    const char **old = names.slot;
    size_t cap = names.cap;
    names.cap = cap ? cap * 2 : 1024;
    names.slot = xrealloc(NULL, names.cap * sizeof *names.slot);
    memset(names.slot, 0, names.cap * sizeof *names.slot);
    for (size_t i = 0; i < cap; i++)
        if (old[i]) names.slot[name_slot(old[i], strlen(old[i]))] = old[i];
    free(old);
}

const char *intern(const char *s, size_t n)
{
    if (names.n * 2 >= names.cap) names_rehash();
    size_t i = name_slot(s, n);
    if (!names.slot[i]) {
        char *copy = arena_alloc(&lasting, n + 1);
        memcpy(copy, s, n);
        names.slot[i] = copy;
        names.n++;
    }
    return names.slot[i];
}

void vec_grow_(void **data, uint32_t *cap, size_t elem)
{
    *cap = *cap ? *cap * 2 : 8;
    *data = xrealloc(*data, (size_t)*cap * elem);
}

char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t n = 0, cap = 1 << 16;
    char *buf = xrealloc(NULL, cap);
    for (size_t got; (got = fread(buf + n, 1, cap - n - 1, f)) > 0;) {
        n += got;
        if (cap - n < 2) buf = xrealloc(buf, cap *= 2);
    }
    bool bad = ferror(f);
    fclose(f);
    if (bad) {
        free(buf);
        return NULL;
    }
    buf[n] = 0;
    *len = n;
    return buf;
}
