/* gpu_dense.h: the dense executor's kernel: a token, or some tokens at once, is a list of steps, each a launch of this one kernel; included by gpu.cu for the GPU and by
 * gpu_host.c for the host. gpu_stock.h has the steps that only checkpoints need. Operations and roundings are those of dense_layer.c; a sum's terms are added in another order, which a proved chip does not notice. Matrices are
 * there in full, float32 or bfloat16. Nothing between two tokens of a chip needs the host: the token, the position and what has been said are on the device.
 * The rules of gpu_kernel.h for barriers hold here, too. */
#ifndef TAPEOUT_GPU_DENSE_H
#define TAPEOUT_GPU_DENSE_H
#include "gpu_shim.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DENSE_ROWS = 8, DENSE_SAID = 1024 }; /* of a product in a block at a time, a part of its threads each; tokens of a run */

/* What goes from token to token. */
typedef struct {
    uint32_t token, pos;  /* to be fed; tokens fed */
    uint32_t nsaid, stop; /* stop: no step does anything any more, until the host has looked */
    uint32_t count;       /* tokens that pass together; a chip's: 1 */
    uint32_t said[DENSE_SAID];
} DenseNow;

typedef enum { DENSE_EMBED, DENSE_NORM, DENSE_MUL, DENSE_CONV, DENSE_HEADS, DENSE_GLU, DENSE_ADD, DENSE_ARGMAX, STOCK_EMBED, STOCK_PRODUCT, STOCK_TURN, STOCK_ATTEND, STOCK_OPEN, STOCK_ARGMAX } DenseOp;

/* kind k: base, width, role (0: trace), row of its embedding; bits' rows follow at nkinds + k * max_width. */
typedef struct {
    uint32_t base, width, stop;
} DenseKind;

typedef struct DenseStep {
    DenseOp op;
    uint32_t blocks, bf16, half; /* half: w holds bfloat16 */
    uint32_t last;            /* MUL: of the last token that passes, not of the first */
    uint32_t plain;           /* MUL: results are not rounded to bfloat16 */
    uint32_t n, cols, stride; /* MUL: rows, columns, elements from row to row; others: n elements */
    float eps;
    DenseNow *now;
    const void *w;            /* MUL: the matrix; NORM, HEADS: gains; CONV: taps */
    const float *x, *b, *a, *z, *alog, *dt;
    float *y, *state;
    uint32_t nk, nv, dk, dv, taps;
    /* EMBED, ARGMAX */
    const DenseKind *kind;
    uint32_t nkinds, max_width, end, unused; /* unused: a row of the vocabulary that is no kind's, whose logit is 0 */
    /* gpu_stock.h */
    const uint32_t *ids;      /* of the tokens that pass */
    uint32_t heads, kv, dim, rot, room; /* of an attention layer; tokens that its cache has room for */
    const float *turn, *knorm, *key, *value; /* 1 / theta^..., [rot / 2]; gains; of these tokens */
    float *keys, *values, *score; /* the cache [room][kv][dim]; [blocks][room] */
} DenseStep;

GPU_FN float dense_bf16(float x)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = x;
    v.u = x != x ? (v.u | 0x400000u) & 0xffff0000u : (v.u + 0x7fffu + (v.u >> 16 & 1u)) & 0xffff0000u;
    return v.f;
}
GPU_FN float dense_cast(const DenseStep *s, float x) { return s->bf16 ? dense_bf16(x) : x; }
GPU_FN float dense_weight(const DenseStep *s, size_t i)
{
    union {
        uint32_t u;
        float f;
    } v;
    if (!s->half) return GPU_READ((const float *)s->w + i);
    v.u = (uint32_t)GPU_READ((const uint16_t *)s->w + i) << 16;
    return v.f;
}
GPU_FN float dense_sigmoid(float x) { return x > 17.0f ? 1.0f : x < -89.0f ? 0.0f : 1.0f / (1.0f + expf(-x)); }
GPU_FN float dense_silu(float x) { return x > 17.0f ? x : x < -89.0f ? -0.0f : x / (1.0f + expf(-x)); }
GPU_FN float dense_softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

/* The sum of all threads' numbers, or the largest, for all of them; scratch: a float a thread. */
GPU_FN float dense_all(float mine, float *scratch, bool largest)
{
    uint32_t t = GPU_THREAD, n = GPU_THREADS;
    GPU_SYNC(); /* nobody still reads an earlier sum */
    scratch[t] = mine;
    GPU_SYNC();
    for (uint32_t half = n / 2; half; half /= 2) {
        if (t < half) scratch[t] = largest ? fmaxf(scratch[t], scratch[t + half]) : scratch[t] + scratch[t + half];
        GPU_SYNC();
    }
    return scratch[0];
}
GPU_FN float dense_sum(float mine, float *scratch) { return dense_all(mine, scratch, false); }

/* ---- steps ---- */
/* w: one row a kind, then max_width rows a kind, all of the embedding. */
GPU_FN void dense_embed(const DenseStep *s)
{
    uint32_t k = 0, token = s->now->token;
    while (k + 1 < s->nkinds && token >= s->kind[k + 1].base) k++;
    bool any = token >= s->kind[k].base && token - s->kind[k].base < 1u << s->kind[k].width;
    uint32_t payload = token - s->kind[k].base;
    for (uint32_t c = GPU_THREAD; c < s->n; c += GPU_THREADS) {
        float x = any ? dense_cast(s, dense_weight(s, (size_t)k * s->stride + c)) : 0;
        for (uint32_t i = 0; any && i < s->kind[k].width; i++)
            if (payload >> i & 1) x = dense_cast(s, x + dense_weight(s, (size_t)(s->nkinds + k * s->max_width + i) * s->stride + c));
        s->y[c] = x;
    }
}

GPU_FN void dense_norm(const DenseStep *s, float *scratch)
{
    const float *w = (const float *)s->w;
    for (uint32_t t = GPU_BLOCK; t < s->now->count; t += GPU_BLOCKS) {
        const float *x = s->x + (size_t)t * s->n;
        float sum = 0;
        for (uint32_t i = GPU_THREAD; i < s->n; i += GPU_THREADS) sum += x[i] * x[i];
        float r = 1.0f / sqrtf(dense_sum(sum, scratch) / (float)s->n + s->eps);
        for (uint32_t i = GPU_THREAD; i < s->n; i += GPU_THREADS) s->y[(size_t)t * s->n + i] = dense_cast(s, x[i] * r * (1.0f + w[i]));
    }
}

/* Four neighbouring terms of a row, or the last ones; rows begin at multiples of four elements. */
GPU_FN float dense_four(const DenseStep *s, size_t at, const float *x, uint32_t left)
{
    float sum = 0;
#ifdef __CUDACC__
    if (left >= 4 && s->half) {
        uint2 w = __ldg((const uint2 *)((const uint16_t *)s->w + at));
        return __uint_as_float(w.x << 16) * x[0] + __uint_as_float(w.x & 0xffff0000u) * x[1] + __uint_as_float(w.y << 16) * x[2] + __uint_as_float(w.y & 0xffff0000u) * x[3];
    }
    if (left >= 4) {
        float4 w = __ldg((const float4 *)((const float *)s->w + at));
        return w.x * x[0] + w.y * x[1] + w.z * x[2] + w.w * x[3];
    }
#endif
    for (uint32_t i = 0; i < 4 && i < left; i++) sum += dense_weight(s, at + i) * x[i];
    return sum;
}

/* Some rows a block, some threads a row; a thread takes four neighbouring columns at a time. */
GPU_FN void dense_mul(const DenseStep *s, float *scratch)
{
    uint32_t t = GPU_THREAD, lanes = GPU_THREADS / DENSE_ROWS, lane = t % lanes;
    const float *x = s->x + (s->last ? (size_t)(s->now->count - 1) * s->cols : 0);
    for (uint32_t first = GPU_BLOCK * DENSE_ROWS; first < s->n; first += GPU_BLOCKS * DENSE_ROWS) {
        uint32_t row = first + t / lanes;
        float sum = 0;
        for (uint32_t c = 4 * lane; row < s->n && c < s->cols; c += 4 * lanes) sum += dense_four(s, (size_t)row * s->stride + c, x + c, s->cols - c);
        scratch[t] = sum;
        GPU_SYNC();
        for (uint32_t i = 1; lane == 0 && i < lanes; i++) sum += scratch[t + i];
        if (lane == 0 && row < s->n) s->y[row] = s->plain ? sum : dense_cast(s, sum);
        GPU_SYNC(); /* the sums have been read */
    }
}

/* x: the tokens' projections, which also go into the ring `state` of the last ones. A channel is one thread's, a token after the other. */
GPU_FN void dense_conv(const DenseStep *s)
{
    for (uint32_t c = GPU_BLOCK * GPU_THREADS + GPU_THREAD; c < s->n; c += GPU_BLOCKS * GPU_THREADS)
        for (uint32_t t = 0, pos = s->now->pos; t < s->now->count; t++, pos++) {
            float sum = 0;
            s->state[(size_t)(pos % s->taps) * s->n + c] = s->x[(size_t)t * s->n + c];
            for (uint32_t j = 0; j < s->taps; j++) sum += ((const float *)s->w)[(size_t)c * s->taps + j] * s->state[(size_t)((pos + 1 + j) % s->taps) * s->n + c];
            s->y[(size_t)t * s->n + c] = dense_cast(s, dense_silu(dense_cast(s, sum)));
        }
}

/* A value head for the token-th token that passes: the delta rule, then the gated norm. Shared: a float a thread, keys and queries [dk] each. x: the convolved
 * projections. */
GPU_FN void dense_head(const DenseStep *s, float *scratch, uint32_t token, uint32_t j)
{
    uint32_t kh = j / (s->nv / s->nk), t = GPU_THREAD, values = s->nv * s->dv;
    const float *x = s->x + (size_t)token * (2 * s->nk * s->dk + values), *z = s->z + (size_t)token * values;
    const float *q0 = x + kh * s->dk, *k0 = x + (s->nk + kh) * s->dk, *v = x + 2 * s->nk * s->dk + j * s->dv;
    float *q = scratch + GPU_THREADS, *k = q + s->dk, *state = s->state + (size_t)j * s->dk * s->dv, *y = s->y + (size_t)token * values, qsum = 0, ksum = 0, norm = 0;
    for (uint32_t i = t; i < s->dk; i += GPU_THREADS) qsum += q0[i] * q0[i], ksum += k0[i] * k0[i];
    float kr = 1.0f / sqrtf(dense_sum(ksum, scratch) + 1e-6f);
    float qr = 1.0f / sqrtf(dense_sum(qsum, scratch) + 1e-6f), scale = sqrtf((float)s->dk);
    for (uint32_t i = t; i < s->dk; i += GPU_THREADS) q[i] = q0[i] * qr / scale, k[i] = k0[i] * kr;
    float beta = dense_cast(s, dense_sigmoid(s->b[(size_t)token * s->nv + j])), decay = expf(-expf(s->alog[j]) * dense_softplus(s->a[(size_t)token * s->nv + j] + s->dt[j]));
    GPU_SYNC();
    for (uint32_t lane = t; lane < s->dv; lane += GPU_THREADS) { /* a lane of all rows is one thread's */
        float r = 0, o = 0;
        for (uint32_t i = 0; i < s->dk; i++) {
            float x = state[(size_t)i * s->dv + lane];
            if (decay != 1.0f) state[(size_t)i * s->dv + lane] = x *= decay;
            if (k[i] != 0) r += x * k[i];
        }
        float d = (v[lane] - r) * beta;
        for (uint32_t i = 0; i < s->dk; i++) {
            if (k[i] != 0) state[(size_t)i * s->dv + lane] += k[i] * d;
            if (q[i] != 0) o += state[(size_t)i * s->dv + lane] * q[i];
        }
        o = dense_cast(s, o);
        norm += o * o;
        y[j * s->dv + lane] = o;
    }
    float r = 1.0f / sqrtf(dense_sum(norm, scratch) / (float)s->dv + s->eps);
    for (uint32_t lane = t; lane < s->dv; lane += GPU_THREADS) {
        float n = dense_cast(s, ((const float *)s->w)[lane] * dense_cast(s, y[j * s->dv + lane] * r));
        y[j * s->dv + lane] = dense_cast(s, n * dense_silu(z[j * s->dv + lane]));
    }
}

GPU_FN void dense_each(const DenseStep *s)
{
    for (size_t i = (size_t)GPU_BLOCK * GPU_THREADS + GPU_THREAD, n = (size_t)s->n * s->now->count; i < n; i += (size_t)GPU_BLOCKS * GPU_THREADS)
        if (s->op == DENSE_ADD) s->y[i] = dense_cast(s, s->y[i] + s->x[i]);
        else s->y[i] = dense_cast(s, dense_cast(s, dense_silu(s->y[i])) * s->x[i]);
}

/* One thread. x: a score a kind, then max_width a kind of its bits, not rounded (head.c). */
GPU_FN void dense_argmax(const DenseStep *s)
{
    DenseNow *now = s->now;
    uint32_t best = s->end, stop = 1;
    float best_score = -INFINITY;
    for (uint32_t k = 0; k < s->nkinds; k++) {
        float score = s->x[k];
        uint32_t payload = 0;
        for (uint32_t i = 0; i < s->kind[k].width; i++) {
            float b = s->x[s->nkinds + k * s->max_width + i];
            if (b > 0) payload |= 1u << i;
            score += fabsf(b);
        }
        score = dense_cast(s, score);
        if (score > best_score) best_score = score, best = s->kind[k].base + payload, stop = s->kind[k].stop;
    }
    if (s->unused && best_score < 0) best = s->end, stop = 1;
    now->said[now->nsaid++] = now->token = best;
    now->pos++;
    now->stop = stop;
}

#include "gpu_stock.h"

GPU_KERNEL(gpu_dense, DenseStep)
{
    GPU_SHARED(shared);
    float *scratch = (float *)(void *)shared;
    const DenseStep *s = &run;
    if (s->now->stop) return;
    switch (s->op) {
    case DENSE_EMBED: dense_embed(s); break;
    case DENSE_NORM: dense_norm(s, scratch); break;
    case DENSE_MUL: dense_mul(s, scratch); break;
    case DENSE_CONV: dense_conv(s); break;
    case DENSE_HEADS:
        for (uint32_t j = GPU_BLOCK; j < s->nv; j += GPU_BLOCKS)
            for (uint32_t t = 0; t < s->now->count; t++) dense_head(s, scratch, t, j);
        break;
    case DENSE_ARGMAX: dense_argmax(s); break;
    case STOCK_EMBED: stock_embed(s); break;
    case STOCK_PRODUCT: stock_product(s, scratch); break;
    case STOCK_TURN: stock_turn(s, scratch); break;
    case STOCK_ATTEND: stock_attend(s, scratch); break;
    case STOCK_OPEN: stock_open(s); break;
    case STOCK_ARGMAX: stock_argmax(s, scratch); break;
    default: dense_each(s); break;
    }
}

/* Threads of a block of a step, where a block likes to have so many; bytes of its shared memory. */
static inline uint32_t dense_threads(const DenseStep *s, uint32_t likes) { return s->op == DENSE_ARGMAX ? 1 : likes; }
static inline size_t dense_shared(const DenseStep *s, uint32_t threads)
{
    if (s->op == STOCK_PRODUCT) return STOCK_SHARED;
    size_t more = s->op == DENSE_HEADS ? 2 * (size_t)s->dk : s->op == STOCK_TURN ? s->dim : s->op == STOCK_ARGMAX ? threads : 0;
    return (threads + more) * sizeof(float);
}
#endif
