/* attention.c: a full-attention layer of Qwen3.5, a token after the other (their projections together) with a growing key/value cache. A chip's last layer
 * is usually a no-op of this kind (o_proj all zero, because stock code demands one attention layer); then nothing is computed and nothing is cached. */
#include "runtime.h"
#include <stdlib.h>

struct Attention {
    Geometry geo;
    bool bf16, idle; /* idle: o_proj is zero */
    const Matrix *m;       /* by TensorId */
    const float *const *w;
    uint32_t pos;         /* tokens seen */
    uint32_t kept, cap;   /* tokens cached, and room for them */
    uint32_t blank;       /* tokens whose key and value are all 0: only counted (score 0), so that a look-up costs what it may find */
    float *keys, *values; /* malloc'd [cap, kv_heads * head_dim] */
    float *query, *score;
    float *gate_query, *key, *value, *mixed; /* of the tokens at hand */
    uint32_t rot; /* rotated dims: even */
};

/* Whether nothing comes out: of a chip's matrix, whose elements are listed. */
static bool is_zero(const Matrix *m) { return m->start && m->start[m->rows] == 0; }

Attention *attention_new(const Geometry *g, bool bf16, const Matrix *m, const float *const *v, uint32_t room, Pool *p)
{
    Attention *a = pool_alloc(p, sizeof *a);
    *a = (Attention){.geo = *g, .bf16 = bf16, .idle = is_zero(&m[T_O_PROJ]), .m = m, .w = v};
    if (a->idle) return a;
    size_t n = (size_t)g->heads * g->head_dim, row = (size_t)g->kv_heads * g->head_dim;
    a->query = pool_array(p, g->head_dim, sizeof(float));
    a->gate_query = pool_array(p, room * 2 * n, sizeof(float));
    a->key = pool_array(p, room * row, sizeof(float)), a->value = pool_array(p, room * row, sizeof(float));
    a->mixed = pool_array(p, room * n, sizeof(float));
    a->rot = g->rope_theta == 0 ? 0 : (uint32_t)(g->head_dim * g->rotary_factor) & ~1u;
    return a;
}

Attention *attention_make(const Model *m, uint32_t layer, Pool *p, bool full, char **err)
{
    static const TensorId matrix[] = {T_Q_PROJ, T_K_PROJ, T_V_PROJ, T_O_PROJ}, vector[] = {T_Q_NORM, T_K_NORM};
    const Tensor *t = m->layer[layer].t;
    Matrix *all = pool_array(p, T_COUNT, sizeof *all);
    const float **v = pool_array(p, T_COUNT, sizeof *v);
    if (!t[T_O_PROJ].n && t[T_O_PROJ].fill == 0) full = false; /* so that it is seen */
    for (unsigned i = 0; i < 4; i++)
        if (!matrix_make(&all[matrix[i]], p, &t[matrix[i]], full, err)) return NULL;
    for (unsigned i = 0; i < 2; i++) v[vector[i]] = tensor_vector(p, &t[vector[i]]);
    return attention_new(&m->geo, m->bf16, all, v, 1, p);
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
    const Geometry *g = &a->geo;
    bool bf16 = a->bf16;
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
    size_t row = (size_t)a->geo.kv_heads * a->geo.head_dim * sizeof(float);
    if (a->kept < a->cap) return;
    a->cap = a->cap ? a->cap * 2 : 256;
    a->keys = xrealloc(a->keys, a->cap * row);
    a->values = xrealloc(a->values, a->cap * row);
    a->score = xrealloc(a->score, a->cap * sizeof(float));
}

/* Takes the key and value of a token into the cache. */
static void cache_token(Attention *a, const float *key, const float *value)
{
    const Geometry *g = &a->geo;
    reserve(a);
    size_t row = (size_t)g->kv_heads * g->head_dim;
    float *k = memcpy(a->keys + a->kept * row, key, row * sizeof *k), *v = memcpy(a->values + a->kept * row, value, row * sizeof *v);
    for (uint32_t h = 0; h < g->kv_heads; h++) {
        rms_norm(a->bf16, g->eps, g->head_dim, k + h * g->head_dim, a->w[T_K_NORM], k + h * g->head_dim);
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
    const Geometry *g = &a->geo;
    bool bf16 = a->bf16;
    size_t row = (size_t)g->kv_heads * g->head_dim;
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

static void attend_head(Attention *a, uint32_t h, const float *gate_query, float *mixed)
{
    const Geometry *g = &a->geo;
    bool bf16 = a->bf16;
    uint32_t n = g->head_dim, kv = h / (g->heads / g->kv_heads);
    size_t row = (size_t)g->kv_heads * n;
    const float *gate = gate_query + (2 * h + 1) * n;
    rms_norm(bf16, g->eps, n, gate_query + 2 * h * n, a->w[T_Q_NORM], a->query);
    rotate(a, a->query);
    attend(a, a->keys + kv * n);
    for (uint32_t d = 0; d < n; d++) {
        float sum = 0;
        for (uint32_t t = 0; t < a->kept; t++) sum += a->score[t] * a->values[t * row + kv * n + d];
        mixed[h * n + d] = cast(bf16, cast(bf16, sum) * cast(bf16, sigmoidf(gate[d])));
    }
}

bool attention_idle(const Attention *a) { return a->idle; }

bool attention_step(Attention *a, uint32_t n, const float *u, float *out)
{
    const Geometry *g = &a->geo;
    size_t width = (size_t)g->heads * g->head_dim, row = (size_t)g->kv_heads * g->head_dim;
    if (a->idle) return false;
    matrix_mul(&a->m[T_Q_PROJ], a->bf16, n, u, a->gate_query);
    matrix_mul(&a->m[T_K_PROJ], a->bf16, n, u, a->key);
    matrix_mul(&a->m[T_V_PROJ], a->bf16, n, u, a->value);
    for (uint32_t t = 0; t < n; t++, a->pos++) {
        cache_token(a, a->key + t * row, a->value + t * row);
        for (uint32_t h = 0; h < g->heads; h++) attend_head(a, h, a->gate_query + 2 * t * width, a->mixed + t * width);
    }
    matrix_mul(&a->m[T_O_PROJ], a->bf16, n, a->mixed, out);
    return true;
}

void attention_close(Attention *a)
{
    if (!a) return;
    free(a->keys);
    free(a->values);
    free(a->score);
}
