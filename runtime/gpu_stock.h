/* gpu_stock.h: steps of the dense executor that only checkpoints need, included by gpu_dense.h: rows of an embedding, products with many tokens at once, attention with a
 * cache, a shared expert's gate, the largest of all logits. */
#ifndef TAPEOUT_GPU_STOCK_H
#define TAPEOUT_GPU_STOCK_H
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <mma.h>
#endif

/* ---- products with many tokens ----
 * A block makes a square of SIDE tokens and SIDE rows, from left to right a strip of columns at a time, which lies in shared memory: bfloat16 where both factors are (then
 * tensor cores multiply, with sums in float32), else float32. On the host plain loops stand for the tensor cores: what they are given and where it goes is the same. */
enum { SIDE = 64, PITCH = 72, OUT_PITCH = 68, STRIP = 128 /* bytes */, STOCK_SHARED = 2 * SIDE * PITCH * 2 + SIDE * OUT_PITCH * 4 };
typedef struct {
    uint32_t w[4];
} __attribute__((aligned(16))) StockQuad;

GPU_FN float stock_wide(uint16_t half)
{
    union {
        uint32_t u;
        float f;
    } v;
    v.u = (uint32_t)half << 16;
    return v.f;
}

GPU_FN uint16_t stock_narrow(float x)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = x;
    return (uint16_t)(v.u >> 16); /* it is a bfloat16 already */
}

/* Columns [c, c + 64) of SIDE rows and SIDE tokens as bfloat16, zeros outside. Rows begin at multiples of 16 bytes, and zeros fill them up to there. */
GPU_FN void stock_load_half(const DenseStep *s, uint32_t row, uint32_t token, uint32_t c, uint16_t *w, uint16_t *x)
{
    const StockQuad none = {{0, 0, 0, 0}};
    for (uint32_t i = GPU_THREAD; i < SIDE * 8; i += GPU_THREADS) {
        uint32_t r = i / 8, at = c + i % 8 * 8;
        bool in = row + r < s->n && at < s->stride;
        *(StockQuad *)(w + r * PITCH + i % 8 * 8) = in ? *(const StockQuad *)((const uint16_t *)s->w + (size_t)(row + r) * s->stride + at) : none;
    }
    for (uint32_t i = GPU_THREAD; i < SIDE * 64; i += GPU_THREADS) {
        uint32_t t = i / 64, at = c + i % 64;
        x[t * PITCH + i % 64] = token + t < s->now->count && at < s->cols ? stock_narrow(s->x[(size_t)(token + t) * s->cols + at]) : 0;
    }
}

/* Columns [c, c + 32) as float32. */
GPU_FN void stock_load_float(const DenseStep *s, uint32_t row, uint32_t token, uint32_t c, float *w, float *x)
{
    for (uint32_t i = GPU_THREAD; i < SIDE * 32; i += GPU_THREADS) {
        uint32_t r = i / 32, at = c + i % 32;
        w[r * (PITCH / 2) + i % 32] = row + r < s->n && at < s->cols ? dense_weight(s, (size_t)(row + r) * s->stride + at) : 0;
        x[r * (PITCH / 2) + i % 32] = token + r < s->now->count && at < s->cols ? s->x[(size_t)(token + r) * s->cols + at] : 0;
    }
}

/* out[t][r] += x[t] . w[r] for that many tokens; a thread has a row and some of them. */
GPU_FN void stock_multiply(const void *w, const void *x, bool half, uint32_t tokens, float *out)
{
    enum { SOME = 16 };
    for (uint32_t i = GPU_THREAD; i < SIDE * SIDE / SOME; i += GPU_THREADS) {
        uint32_t r = i % SIDE, first = i / SIDE * SOME;
        for (uint32_t t = first; t < first + SOME && t < tokens; t++) {
            float sum = out[t * OUT_PITCH + r];
            for (uint32_t k = 0; k < (half ? 64u : 32u); k++)
                sum += half ? stock_wide(((const uint16_t *)x)[t * PITCH + k]) * stock_wide(((const uint16_t *)w)[r * PITCH + k])
                            : ((const float *)x)[t * (PITCH / 2) + k] * ((const float *)w)[r * (PITCH / 2) + k];
            out[t * OUT_PITCH + r] = sum;
        }
    }
}

#ifdef __CUDACC__
/* The same by tensor cores: a warp has some of the 16 squares of 16 tokens and 16 rows. */
GPU_FN void stock_multiply_tensor(const uint16_t *w, const uint16_t *x, float *out)
{
    using namespace nvcuda;
    const __nv_bfloat16 *rows = (const __nv_bfloat16 *)w, *tokens = (const __nv_bfloat16 *)x;
    for (uint32_t i = GPU_THREAD / 32; i < 16; i += GPU_THREADS / 32) {
        uint32_t t = i / 4 * 16, r = i % 4 * 16;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
        wmma::load_matrix_sync(sum, out + t * OUT_PITCH + r, OUT_PITCH, wmma::mem_row_major);
        for (uint32_t k = 0; k < 64; k += 16) {
            wmma::load_matrix_sync(a, tokens + t * PITCH + k, PITCH);
            wmma::load_matrix_sync(b, rows + r * PITCH + k, PITCH);
            wmma::mma_sync(sum, a, b, sum);
        }
        wmma::store_matrix_sync(out + t * OUT_PITCH + r, sum, OUT_PITCH, wmma::mem_row_major);
    }
}
#endif

GPU_FN void stock_square(const DenseStep *s, float *shared, uint32_t row, uint32_t token)
{
    bool half = s->half && s->bf16;
    float *out = shared;
    uint16_t *w = (uint16_t *)(void *)(out + SIDE * OUT_PITCH), *x = w + SIDE * PITCH;
    for (uint32_t i = GPU_THREAD; i < SIDE * OUT_PITCH; i += GPU_THREADS) out[i] = 0;
    for (uint32_t c = 0; c < s->cols; c += half ? STRIP / 2 : STRIP / 4) {
        if (half) stock_load_half(s, row, token, c, w, x);
        else stock_load_float(s, row, token, c, (float *)(void *)w, (float *)(void *)x);
        GPU_SYNC();
#ifdef __CUDACC__
        if (half) stock_multiply_tensor(w, x, out);
        else
#endif
            stock_multiply(w, x, half, s->now->count - token, out);
        GPU_SYNC();
    }
    for (uint32_t i = GPU_THREAD; i < SIDE * SIDE; i += GPU_THREADS) {
        uint32_t t = i / SIDE, r = i % SIDE;
        if (token + t < s->now->count && row + r < s->n) s->y[(size_t)(token + t) * s->n + row + r] = dense_cast(s, out[t * OUT_PITCH + r]);
    }
}

/* There are blocks for all squares. */
GPU_FN void stock_product(const DenseStep *s, float *shared)
{
    uint32_t across = (s->n + SIDE - 1) / SIDE, token = GPU_BLOCK / across * SIDE;
    if (token < s->now->count) stock_square(s, shared, GPU_BLOCK % across * SIDE, token);
}

/* ---- embedding ---- */
GPU_FN void stock_embed(const DenseStep *s)
{
    for (uint32_t t = GPU_BLOCK; t < s->now->count; t += GPU_BLOCKS)
        for (uint32_t c = GPU_THREAD; c < s->n; c += GPU_THREADS) s->y[(size_t)t * s->n + c] = dense_weight(s, (size_t)s->ids[t] * s->stride + c);
}

/* ---- attention (attention.c) ---- */
/* One head of a query or key: norm, then the rotation; shared: a float a thread, the head. */
GPU_FN void stock_turn_head(const DenseStep *s, float *scratch, const float *x, const float *gain, uint32_t pos, float *y)
{
    float sum = 0, *head = scratch + GPU_THREADS;
    for (uint32_t i = GPU_THREAD; i < s->dim; i += GPU_THREADS) sum += x[i] * x[i];
    float r = 1.0f / sqrtf(dense_sum(sum, scratch) / (float)s->dim + s->eps);
    for (uint32_t i = GPU_THREAD; i < s->dim; i += GPU_THREADS) head[i] = dense_cast(s, x[i] * r * (1.0f + gain[i]));
    GPU_SYNC();
    for (uint32_t i = GPU_THREAD; i < s->dim; i += GPU_THREADS) {
        uint32_t half = s->rot / 2, d = i < half ? i : i - half;
        float v = head[i];
        if (i < s->rot) {
            float angle = (float)pos * s->turn[d], c = dense_cast(s, cosf(angle)), sine = dense_cast(s, sinf(angle));
            v = dense_cast(s, dense_cast(s, v * c) + dense_cast(s, i < half ? -head[i + half] * sine : head[d] * sine));
        }
        y[i] = v;
    }
}

/* x: queries, each followed by its gate. Queries go to y, keys and values into the cache. */
GPU_FN void stock_turn(const DenseStep *s, float *scratch)
{
    uint32_t each = s->heads + s->kv, pos = s->now->pos;
    for (uint32_t i = GPU_BLOCK; i < each * s->now->count; i += GPU_BLOCKS) {
        uint32_t t = i / each, h = i % each;
        if (h < s->heads) {
            stock_turn_head(s, scratch, s->x + ((size_t)t * s->heads + h) * 2 * s->dim, (const float *)s->w, pos + t, s->y + ((size_t)t * s->heads + h) * s->dim);
            continue;
        }
        size_t from = ((size_t)t * s->kv + h - s->heads) * s->dim, to = ((size_t)(pos + t) * s->kv + h - s->heads) * s->dim;
        stock_turn_head(s, scratch, s->key + from, s->knorm, pos + t, s->keys + to);
        for (uint32_t d = GPU_THREAD; d < s->dim; d += GPU_THREADS) s->values[to + d] = s->value[from + d];
    }
}

/* A query against all keys up to its own; score: this block's, [room]. */
GPU_FN void stock_attend_head(const DenseStep *s, float *scratch, uint32_t t, uint32_t h, float *score)
{
    uint32_t kept = s->now->pos + t + 1, n = s->dim, kv = h / (s->heads / s->kv);
    const float *query = s->x + ((size_t)t * s->heads + h) * n, *gate = s->z + (((size_t)t * s->heads + h) * 2 + 1) * n;
    const float *keys = s->keys + (size_t)kv * n, *values = s->values + (size_t)kv * n;
    size_t row = (size_t)s->kv * n;
    float scale = 1.0f / sqrtf((float)n), mine = -INFINITY, total = 0;
    for (uint32_t k = GPU_THREAD; k < kept; k += GPU_THREADS) {
        float sum = 0;
        for (uint32_t d = 0; d < n; d++) sum += query[d] * keys[k * row + d];
        score[k] = dense_cast(s, dense_cast(s, sum) * scale);
        mine = fmaxf(mine, score[k]);
    }
    float top = dense_all(mine, scratch, true);
    for (uint32_t k = GPU_THREAD; k < kept; k += GPU_THREADS) total += score[k] = expf(score[k] - top);
    total = dense_sum(total, scratch);
    for (uint32_t k = GPU_THREAD; k < kept; k += GPU_THREADS) score[k] = dense_cast(s, score[k] / total);
    GPU_SYNC();
    for (uint32_t d = GPU_THREAD; d < n; d += GPU_THREADS) {
        float sum = 0;
        for (uint32_t k = 0; k < kept; k++) sum += score[k] * values[k * row + d];
        s->y[((size_t)t * s->heads + h) * n + d] = dense_cast(s, dense_cast(s, sum) * dense_cast(s, dense_sigmoid(gate[d])));
    }
    GPU_SYNC(); /* the scores are another head's */
}

GPU_FN void stock_attend(const DenseStep *s, float *scratch)
{
    for (uint32_t i = GPU_BLOCK; i < s->heads * s->now->count; i += GPU_BLOCKS) stock_attend_head(s, scratch, i / s->heads, i % s->heads, s->score + (size_t)GPU_BLOCK * s->room);
}

/* ---- the rest ---- */
/* x: the gate's logit of each token. */
GPU_FN void stock_open(const DenseStep *s)
{
    for (size_t i = (size_t)GPU_BLOCK * GPU_THREADS + GPU_THREAD, n = (size_t)s->n * s->now->count; i < n; i += (size_t)GPU_BLOCKS * GPU_THREADS)
        s->y[i] = dense_cast(s, dense_cast(s, dense_sigmoid(s->x[i / s->n])) * s->y[i]);
}

/* The first of the largest of n logits; one block. They are no numbers: `stop`. Shared: a float and a place a thread. */
GPU_FN void stock_argmax(const DenseStep *s, float *scratch)
{
    uint32_t t = GPU_THREAD, at = UINT32_MAX, *place = (uint32_t *)(void *)(scratch + GPU_THREADS);
    float mine = -INFINITY;
    for (uint32_t i = t; i < s->n; i += GPU_THREADS)
        if (s->x[i] > mine) mine = s->x[i], at = i;
    float top = dense_all(mine, scratch, true);
    place[t] = mine == top ? at : UINT32_MAX;
    GPU_SYNC();
    if (t) return;
    at = place[0];
    for (uint32_t i = 1; i < GPU_THREADS; i++)
        if (place[i] < at) at = place[i];
    s->now->token = at;
    s->now->stop = !(top < INFINITY) || at == UINT32_MAX;
}
#endif
