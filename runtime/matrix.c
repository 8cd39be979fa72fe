/* matrix.c: a chip's tensors in the forms that back ends compute with.
 *
 * The sparse form gives bit for bit the sums of plain dense loops: a left-out element would add w * x = +-0 to a sum that
 * starts at +0, and s + +-0 = s for every s but -0, which such a sum never holds (+0 + -0 = +0 and x + -x = +0 in
 * round-to-nearest). This needs finite x, which holds in every chip whose margins are proved; the dense back end's
 * `full_dense` option drops the shortcut and shows the same. */
#include "runtime.h"
#include <stdlib.h>

static bool make_full(Matrix *m, Pool *p, const Tensor *t, char **err)
{
    size_t n = (size_t)t->rows * t->cols;
    if (n > (size_t)1 << 32) return fail(err, "a matrix of %u x %u is too large to hold in full", t->rows, t->cols);
    m->full = tensor_vector(p, t);
    return true;
}

bool matrix_make(Matrix *m, Pool *p, const Tensor *t, bool full, char **err)
{
    *m = (Matrix){.rows = t->rows, .cols = t->cols};
    if (full || t->fill != 0) return make_full(m, p, t, err);
    m->start = pool_array(p, (size_t)t->rows + 1, sizeof *m->start);
    m->col = t->col;
    m->value = t->value;
    for (uint32_t i = 0; i < t->n; i++) m->start[t->row[i] + 1]++;
    for (uint32_t r = 0; r < t->rows; r++) m->start[r + 1] += m->start[r];
    return true;
}

float matrix_dot(const Matrix *m, uint32_t row, const float *x)
{
    float sum = 0;
    if (m->full) {
        const float *w = m->full + (size_t)row * m->cols;
        for (uint32_t c = 0; c < m->cols; c++) sum += w[c] * x[c];
        return sum;
    }
    for (uint32_t i = m->start[row]; i < m->start[row + 1]; i++) sum += m->value[i] * x[m->col[i]];
    return sum;
}

void matrix_mul(const Matrix *m, bool bf16, uint32_t n, const float *x, float *y)
{
    if (m->stored) {
        stored_mul(m, bf16, n, x, y);
        return;
    }
    for (uint32_t t = 0; t < n; t++, x += m->cols, y += m->rows)
        for (uint32_t r = 0; r < m->rows; r++) y[r] = cast(bf16, matrix_dot(m, r, x));
}

float *tensor_vector(Pool *p, const Tensor *t)
{
    size_t n = (size_t)t->rows * t->cols;
    float *v = pool_array(p, n, sizeof *v);
    for (size_t i = 0; t->fill != 0 && i < n; i++) v[i] = t->fill;
    for (uint32_t i = 0; i < t->n; i++) v[(size_t)t->row[i] * t->cols + (size_t)t->col[i]] = t->value[i];
    return v;
}
