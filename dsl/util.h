/* util.h: what every stage shares: arenas, growable arrays, interned names, and `die` for our own bugs.
 *
 * Memory: what a compilation builds lives until the process ends, and nothing is freed piecemeal; only what is tried and thrown away has an
 * arena of its own.
 * Errors: `die` is for broken invariants only. A user's mistake goes through diag.c (dsl.h) or a loader's own
 * error string; it never ends in `die` or an assert. */
#ifndef TAPEOUT_UTIL_H
#define TAPEOUT_UTIL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A place in a source file: `file` indexes the table of sources (dsl.h), 0 = no place. 1-based line and column. */
typedef struct {
    uint32_t file, line, col, len;
} Span;
/* diag.c: Span.file is 1..source_count(), the root first; 0: none. The name as it was given. */
uint32_t source_count(void);
const char *source_name(uint32_t file);

/* Zeroed memory of the arena in use, at first of one that is never freed; aborts when the system has none. */
void *xalloc(size_t bytes);
/* An arena for what is dropped before the process ends: made, used (NULL: the one that is never freed; the one in use before is returned) and freed
 * with all that was allocated in it. Interned names are never in one; growable arrays neither. */
typedef struct Arena Arena;
Arena *arena_new(void);
Arena *arena_use(Arena *a);
void arena_free(Arena *a);
/* Grows a malloc'd block; aborts when the system has none. */
void *xrealloc(void *p, size_t bytes);
char *xstrdup(const char *s);
/* printf into fresh memory. */
char *xfmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The one copy of the string s[0..n); equal strings give equal pointers. */
const char *intern(const char *s, size_t n);

/* Growable array: VEC(T) declares {data, n, cap}; vec_push appends one element and evaluates to its index. */
#define VEC(T)          \
    struct {            \
        T *data;        \
        uint32_t n, cap;\
    }
#define vec_push(v, x) \
    ((v)->n < (v)->cap ? (void)0 : vec_grow_((void **)&(v)->data, &(v)->cap, sizeof *(v)->data), (v)->data[(v)->n] = (x), (v)->n++)
void vec_grow_(void **data, uint32_t *cap, size_t elem);

/* A broken invariant of ours: prints file:line and aborts. */
#define die(...) die_(__FILE__, __LINE__, __VA_ARGS__)
void die_(const char *file, int line, const char *fmt, ...) __attribute__((noreturn, format(printf, 3, 4)));

/* The whole of a file, NUL-terminated, its length in *len; NULL with errno set when it cannot be read. */
char *read_file(const char *path, size_t *len);

static inline uint64_t mask64(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }
/* Bits needed to write every number below n: clog2(1) = 0, clog2(32) = 5, clog2(33) = 6. */
static inline unsigned clog2(uint64_t n)
{
    unsigned b = 0;
    while (n > (b >= 64 ? ~0ull : 1ull << b)) b++;
    return b;
}
#endif
