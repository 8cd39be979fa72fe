/* attention.c: a full-attention layer of Qwen3.5, one token at a time with a
 * growing key/value cache. A chip's last layer is usually a no-op of this kind (o_proj all zero, because stock code
 * demands one attention layer); then nothing is computed and nothing is cached. */
#include "runtime.h"
#include <stdlib.h>

struct Attention {
    const Model *m;
    bool idle; /* o_proj is zero */
    Matrix q, k, v, o;
    const float *q_norm, *k_norm;
    uint32_t pos;         /* tokens seen */
    uint32_t kept, cap;   /* tokens cached, and room for them */
    uint32_t blank;       /* tokens whose key and value are all 0: only counted (score 0), so that a look-up costs what it may find */
    float *keys, *values; /* malloc'd [cap, kv_heads * head_dim] */
    float *query, *gate_query, *mixed, *score;
    uint32_t rot; /* rotated dims: even */
};

Attention *attention_make(const Model *m, uint32_t layer, Pool *p, bool full, char **err)
{
    const Geometry *g = &m->geo;
    const Tensor *t = m->layer[layer].t;
    Attention *a = pool_alloc(p, sizeof *a);
    a->m = m;
    a->idle = t[T_O_PROJ].n == 0 && t[T_O_PROJ].fill == 0;
    if (a->idle) return a;
    if (!matrix_make(&a->q, p, &t[T_Q_PROJ], full, err) || !matrix_make(&a->k, p, &t[T_K_PROJ], full, err) ||
        !matrix_make(&a->v, p, &t[T_V_PROJ], full, err) || !matrix_make(&a->o, p, &t[T_O_PROJ], full, err))
        return NULL;
    a->q_norm = tensor_vector(p, &t[T_Q_NORM]);
    a->k_norm = tensor_vector(p, &t[T_K_NORM]);
    a->gate_query = pool_array(p, 2 * g->heads * g->head_dim, sizeof(float));
    a->query = pool_array(p, g->head_dim, sizeof(float));
    a->mixed = pool_array(p, g->heads * g->head_dim, sizeof(float));
    a->rot = (uint32_t)(g->head_dim * g->rotary_factor) & ~1u;
    return a;
}

void rms_norm(bool bf16, float eps, uint32_t n, const float *x, const float *w, float *y)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    float r = rsqrtf(sum / (float)n + eps);
    for (uint32_t i = 0; i < n; i++) y[i] = cast(bf16, x[i] * r * (1.0f + w[i]));
}

/* Pairs (d, d + rot/2) turn by pos * theta^(-2d/rot): the angle in float32, cos and sin cast to T, products and sum in T. */
static void rotate(const Attention *a, float *x)
{
    const Geometry *g = &a->m->geo;
    bool bf16 = a->m->bf16;
    uint32_t half = a->rot / 2;
    for (uint32_t d = 0; d < half; d++) {
        float inv = 1.0f / powf((float)g->rope_theta, (float)(2 * d) / (float)a->rot);
        float angle = (float)a->pos * inv, c = cast(bf16, cosf(angle)), s = cast(bf16, sinf(angle));
        float lo = x[d], hi = x[d + half];
        x[d] = cast(bf16, cast(bf16, lo * c) + cast(bf16, -hi * s));
        x[d + half] = cast(bf16, cast(bf16, hi * c) + cast(bf16, lo * s));
    }
}

static void reserve(Attention *a)
{
    size_t row = a->m->geo.kv_heads * a->m->geo.head_dim * sizeof(float);
    if (a->kept < a->cap) return;
    a->cap = a->cap ? a->cap * 2 : 256;
    a->keys = xrealloc(a->keys, a->cap * row);
    a->values = xrealloc(a->values, a->cap * row);
    a->score = xrealloc(a->score, a->cap * sizeof(float));
}

static void cache_token(Attention *a, const float *u)
{
    const Geometry *g = &a->m->geo;
    bool bf16 = a->m->bf16;
    reserve(a);
    size_t row = g->kv_heads * g->head_dim;
    float *k = a->keys + a->kept * row, *v = a->values + a->kept * row;
    matrix_mul(&a->k, bf16, u, k);
    matrix_mul(&a->v, bf16, u, v);
    for (uint32_t h = 0; h < g->kv_heads; h++) {
        rms_norm(bf16, g->eps, g->head_dim, k + h * g->head_dim, a->k_norm, k + h * g->head_dim);
        rotate(a, k + h * g->head_dim);
    }
    bool blank = true;
    for (size_t i = 0; i < row && blank; i++) blank = k[i] == 0 && v[i] == 0;
    a->kept += !blank;
    a->blank += blank;
}

/* scores of the kept tokens: q . k / sqrt(head_dim), in T; then softmax in float32, cast to T. */
static void attend(Attention *a, const float *keys)
{
    const Geometry *g = &a->m->geo;
    bool bf16 = a->m->bf16;
    size_t row = g->kv_heads * g->head_dim;
    float scale = rsqrtf((float)g->head_dim), top = a->blank ? 0 : -INFINITY, total = 0;
    for (uint32_t t = 0; t < a->kept; t++) {
        float sum = 0;
        for (uint32_t d = 0; d < g->head_dim; d++) sum += a->query[d] * keys[t * row + d];
        a->score[t] = cast(bf16, cast(bf16, sum) * scale);
        if (a->score[t] > top) top = a->score[t];
    }
    total = (float)a->blank * expf(-top);
    for (uint32_t t = 0; t < a->kept; t++) total += a->score[t] = expf(a->score[t] - top);
    for (uint32_t t = 0; t < a->kept; t++) a->score[t] = cast(bf16, a->score[t] / total);
}

static void attend_head(Attention *a, uint32_t h)
{
    const Geometry *g = &a->m->geo;
    bool bf16 = a->m->bf16;
    uint32_t n = g->head_dim, kv = h / (g->heads / g->kv_heads);
    size_t row = g->kv_heads * n;
    const float *gate = a->gate_query + (2 * h + 1) * n;
    rms_norm(bf16, g->eps, n, a->gate_query + 2 * h * n, a->q_norm, a->query);
    rotate(a, a->query);
    attend(a, a->keys + kv * n);
    for (uint32_t d = 0; d < n; d++) {
        float sum = 0;
        for (uint32_t t = 0; t < a->kept; t++) sum += a->score[t] * a->values[t * row + kv * n + d];
        a->mixed[h * n + d] = cast(bf16, cast(bf16, sum) * cast(bf16, sigmoidf(gate[d])));
    }
}

bool attention_idle(const Attention *a) { return a->idle; }

bool attention_step(Attention *a, const float *u, float *out)
{
    if (a->idle) return false;
    matrix_mul(&a->q, a->m->bf16, u, a->gate_query);
    cache_token(a, u);
    for (uint32_t h = 0; h < a->m->geo.heads; h++) attend_head(a, h);
    a->pos++;
    matrix_mul(&a->o, a->m->bf16, a->mixed, out);
    return true;
}

void attention_close(Attention *a)
{
    if (!a) return;
    free(a->keys);
    free(a->values);
    free(a->score);
}
