/* stored.c: products with rows as they lie in a file: float32 or bfloat16, at any address, never copied.
 *
 * A sum has LANES partial sums, lane i of the columns i, i + LANES, ... in that order, which are then added pairwise; so it is the same number whatever
 * the processor's vectors and however many tokens are multiplied at once, and columns of zeros at the end of a row change nothing. A few tokens share
 * one pass over a row. */
#include "runtime.h"
#include <stdlib.h>

enum { VECTOR = 8, LANES = 2 * VECTOR, TOKENS = 4 };
typedef float Floats __attribute__((vector_size(4 * VECTOR)));
typedef uint32_t Words __attribute__((vector_size(4 * VECTOR)));
typedef uint16_t Halves __attribute__((vector_size(2 * VECTOR)));

/* Eight numbers of a row, which may lie anywhere. */
#define LOAD(v, row, at, half)                                                \
    do {                                                                      \
        if (half) {                                                           \
            Halves h_;                                                        \
            memcpy(&h_, (row) + 2 * (size_t)(at), sizeof h_);                 \
            Words w_ = __builtin_convertvector(h_, Words) << 16;              \
            memcpy(&(v), &w_, sizeof(v));                                     \
        } else {                                                              \
            memcpy(&(v), (row) + 4 * (size_t)(at), sizeof(v));                \
        }                                                                     \
    } while (0)

static inline float one(const uint8_t *row, bool half, uint32_t at) { return st_number(row + (half ? 2 : 4) * (size_t)at, half); }

/* y[t * rows] = row . x[t * cols], for `tokens` (a constant) tokens. */
static inline __attribute__((always_inline)) void dots(const uint8_t *row, bool half, uint32_t cols, const float *x, uint32_t tokens, float *y, size_t rows)
{
    Floats sum[TOKENS][2] = {{{0}}};
    float lane[LANES];
    uint32_t c = 0;
    for (; c + LANES <= cols; c += LANES) {
        Floats w0, w1, x0, x1;
        LOAD(w0, row, c, half);
        LOAD(w1, row, c + VECTOR, half);
        for (uint32_t t = 0; t < tokens; t++) {
            memcpy(&x0, x + (size_t)t * cols + c, sizeof x0);
            memcpy(&x1, x + (size_t)t * cols + c + VECTOR, sizeof x1);
            sum[t][0] += w0 * x0, sum[t][1] += w1 * x1;
        }
    }
    for (uint32_t t = 0; t < tokens; t++) {
        memcpy(lane, sum[t], sizeof lane);
        for (uint32_t i = c; i < cols; i++) lane[i % LANES] += one(row, half, i) * x[(size_t)t * cols + i];
        for (uint32_t n = LANES / 2; n; n /= 2)
            for (uint32_t i = 0; i < n; i++) lane[i] += lane[i + n];
        y[t * rows] = lane[0];
    }
}

#define DEFINE_ROW(name, attribute)                                                                                                \
    attribute static void name(const uint8_t *row, bool half, uint32_t cols, uint32_t n, const float *x, float *y, size_t rows)    \
    {                                                                                                                              \
        uint32_t t = 0;                                                                                                            \
        for (; t + TOKENS <= n; t += TOKENS)                                                                                       \
            if (half) dots(row, true, cols, x + (size_t)t * cols, TOKENS, y + t * rows, rows);                                     \
            else dots(row, false, cols, x + (size_t)t * cols, TOKENS, y + t * rows, rows);                                         \
        for (; t < n; t++)                                                                                                         \
            if (half) dots(row, true, cols, x + (size_t)t * cols, 1, y + t * rows, rows);                                          \
            else dots(row, false, cols, x + (size_t)t * cols, 1, y + t * rows, rows);                                              \
    }
DEFINE_ROW(row_plain, )
#if defined(__x86_64__)
DEFINE_ROW(row_avx2, __attribute__((target("avx2"))))
#endif

typedef void RowFn(const uint8_t *row, bool half, uint32_t cols, uint32_t n, const float *x, float *y, size_t rows);

static RowFn *best_row(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return row_avx2;
#endif
    return row_plain;
}

void stored_row(const Matrix *m, uint32_t r, float *out)
{
    for (uint32_t c = 0; c < m->cols; c++) {
        out[c] = one(m->stored[r], m->half, c);
        if (m->round) out[c] = bf16_round(out[c]);
    }
}

void stored_mul(const Matrix *m, bool bf16, uint32_t n, const float *x, float *y)
{
    RowFn *row = best_row();
    float *rounded = m->round ? xrealloc(NULL, m->cols * sizeof *rounded) : NULL;
    for (uint32_t r = 0; r < m->rows; r++) {
        if (rounded) stored_row(m, r, rounded);
        row(rounded ? (const uint8_t *)rounded : m->stored[r], m->half, m->cols, n, x, y + r, m->rows);
        for (uint32_t t = 0; t < n; t++) y[(size_t)t * m->rows + r] = cast(bf16, y[(size_t)t * m->rows + r]);
    }
    free(rounded);
}
