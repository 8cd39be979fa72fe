/* head.c: embedding and output head in the chip's factored form.
 *
 * Why the argmax over a product code needs no vocabulary: the logit of (kind k, payload p) is
 *     A_k + sum over i < width of s_i(p) B_ki,   A_k = kind row . u,  B_ki = bit row . u,  s_i = +-1 freely chosen.
 * For a fixed kind the sum is largest when every s_i has the sign of B_ki, which gives A_k + sum |B_ki|; so the best
 * payload is the sign bits, and the best kind the one whose bound is largest. Ties go to the lowest id as in torch's
 * argmax: bit i is 0 when B_ki = 0, and the first of equal kinds wins. In floating point both sides compute the same
 * number when the partial sums are exact, which the proof demands of the output head; head_argmax_full checks it. */
#include "runtime.h"
#include <stdlib.h>

struct Head {
    const Model *m;
    Matrix kind, bit;
    /* for head_argmax_full: the columns that kind k's rows use, [ucols[k], ucols[k + 1]) of cols */
    uint32_t *ucols;
    int32_t *cols;
    float *row; /* [hidden] scratch */
};

static void add_row(const Tensor *t, const Matrix *index, bool bf16, uint32_t row, float sign, float *x)
{
    for (uint32_t i = index->start[row]; i < index->start[row + 1]; i++) x[t->col[i]] = cast(bf16, x[t->col[i]] + sign * t->value[i]);
}

uint32_t tensor_first(const Tensor *t, uint32_t row)
{
    uint32_t lo = 0, hi = t->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if ((uint32_t)t->row[mid] < row) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static void embed_row(const Tensor *t, bool bf16, uint32_t row, float *x)
{
    for (uint32_t i = tensor_first(t, row); i < t->n && (uint32_t)t->row[i] == row; i++)
        x[t->col[i]] = cast(bf16, x[t->col[i]] + t->value[i]);
}

void head_embed(const Model *m, uint32_t token, float *x)
{
    const ChipKind *k = model_kind(m, token);
    memset(x, 0, m->geo.hidden * sizeof *x);
    if (!k) return;
    uint32_t index = (uint32_t)(k - m->kind), payload = token - k->base;
    embed_row(&m->embed_kind, m->bf16, index, x);
    for (uint32_t i = 0; i < k->width; i++)
        if (payload >> i & 1) embed_row(&m->embed_bit, m->bf16, index * m->max_width + i, x);
}

static int by_int(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static void collect_columns(Head *h, uint32_t k, uint32_t *n)
{
    const Model *m = h->m;
    uint32_t first = *n, b0 = k * m->max_width;
    for (uint32_t i = h->kind.start[k]; i < h->kind.start[k + 1]; i++) h->cols[(*n)++] = h->kind.col[i];
    for (uint32_t i = h->bit.start[b0]; i < h->bit.start[b0 + m->max_width]; i++) h->cols[(*n)++] = h->bit.col[i];
    qsort(h->cols + first, *n - first, sizeof *h->cols, by_int);
    uint32_t out = first;
    for (uint32_t i = first; i < *n; i++)
        if (out == first || h->cols[out - 1] != h->cols[i]) h->cols[out++] = h->cols[i];
    *n = out;
}

Head *head_make(const Model *m, Pool *p)
{
    Head *h = pool_alloc(p, sizeof *h);
    uint32_t n = 0;
    h->m = m;
    /* no fill in these, so neither can fail */
    matrix_make(&h->kind, p, &m->head_kind, false, NULL);
    matrix_make(&h->bit, p, &m->head_bit, false, NULL);
    h->ucols = pool_array(p, m->nkinds + 1, sizeof *h->ucols);
    h->cols = pool_array(p, (size_t)m->head_kind.n + m->head_bit.n, sizeof *h->cols);
    h->row = pool_array(p, m->geo.hidden, sizeof *h->row);
    for (uint32_t k = 0; k < m->nkinds; k++) {
        h->ucols[k] = n;
        collect_columns(h, k, &n);
    }
    h->ucols[m->nkinds] = n;
    return h;
}

uint32_t head_argmax(const Head *h, const float *u)
{
    const Model *m = h->m;
    uint32_t best = m->end;
    float best_score = -INFINITY;
    for (uint32_t k = 0; k < m->nkinds; k++) {
        float score = matrix_dot(&h->kind, k, u);
        uint32_t payload = 0;
        for (uint32_t i = 0; i < m->kind[k].width; i++) {
            float b = matrix_dot(&h->bit, k * m->max_width + i, u);
            if (b > 0) payload |= 1u << i;
            score += fabsf(b);
        }
        score = cast(m->bf16, score);
        if (score > best_score) {
            best_score = score;
            best = m->kind[k].base + payload;
        }
    }
    return m->end < m->geo.vocab && best_score < 0 ? m->end : best; /* an unused row's logit is 0 */
}

static float logit(const Head *h, uint32_t k, uint32_t payload, const float *u)
{
    const Model *m = h->m;
    float sum = 0;
    add_row(&m->head_kind, &h->kind, m->bf16, k, 1, h->row);
    for (uint32_t i = 0; i < m->kind[k].width; i++)
        add_row(&m->head_bit, &h->bit, m->bf16, k * m->max_width + i, payload >> i & 1 ? 1 : -1, h->row);
    for (uint32_t i = h->ucols[k]; i < h->ucols[k + 1]; i++) {
        sum += h->row[h->cols[i]] * u[h->cols[i]];
        h->row[h->cols[i]] = 0;
    }
    return cast(m->bf16, sum);
}

uint32_t head_argmax_full(const Head *h, const float *u)
{
    const Model *m = h->m;
    uint32_t best = m->end;
    float best_score = -INFINITY;
    for (uint32_t k = 0; k < m->nkinds; k++)
        for (uint32_t payload = 0; payload < 1u << m->kind[k].width; payload++) {
            float score = logit(h, k, payload, u);
            if (score > best_score) {
                best_score = score;
                best = m->kind[k].base + payload;
            }
        }
    return m->end < m->geo.vocab && best_score < 0 ? m->end : best;
}
