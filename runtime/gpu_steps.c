/* gpu_steps.c: the steps of a model's layers, and the memory that they work in. */
#include "gpu_steps.h"
#include <stdlib.h>

/* ---- what lies there ---- */
void *steps_room(GpuSteps *s, size_t bytes)
{
    void *p = s->failed ? NULL : s->d->alloc(s->d, bytes, s->err);
    if (!p) s->failed = true;
    else vec_push(&s->owned, p);
    return p;
}

float *steps_floats(GpuSteps *s, size_t n) { return steps_room(s, n * sizeof(float)); }

bool steps_put(GpuSteps *s, void *to, const void *data, size_t bytes)
{
    if (!s->failed && !s->d->put(s->d, to, data, bytes, s->err)) s->failed = true;
    return !s->failed;
}

void *steps_send(GpuSteps *s, const void *data, size_t bytes)
{
    void *p = steps_room(s, bytes);
    if (p) steps_put(s, p, data, bytes);
    return p;
}

/* How often a pair of channels turns in a token. */
static float *send_turns(GpuSteps *s, uint32_t rot)
{
    float turn[rot / 2 + 1];
    for (uint32_t d = 0; d < rot / 2; d++) turn[d] = 1.0f / powf((float)s->geo.rope_theta, (float)(2 * d) / (float)rot);
    return steps_send(s, turn, rot / 2 * sizeof *turn);
}

static uint32_t turned_dims(const Geometry *g) { return g->rope_theta == 0 ? 0 : (uint32_t)(g->head_dim * g->rotary_factor) & ~1u; }

static uint32_t attend_blocks(const GpuSteps *s) { return 4 * s->d->processors; }

static void begin_attention(GpuSteps *s)
{
    const Geometry *g = &s->geo;
    size_t width = (size_t)s->room * g->heads * g->head_dim, row = (size_t)s->room * g->kv_heads * g->head_dim;
    s->queries = steps_floats(s, 2 * width), s->turned = steps_floats(s, width), s->mixed = steps_floats(s, width);
    s->key = steps_floats(s, row), s->value = steps_floats(s, row);
    s->score = steps_floats(s, (size_t)attend_blocks(s) * s->positions);
    s->turn = send_turns(s, turned_dims(g));
}

void steps_begin(GpuSteps *s, bool attention)
{
    const Geometry *g = &s->geo;
    size_t n = s->room, values = (size_t)g->nv * g->dv;
    s->now = steps_room(s, sizeof *s->now);
    s->x = steps_floats(s, n * g->hidden), s->u = steps_floats(s, n * g->hidden), s->mix = steps_floats(s, n * g->hidden);
    s->qkv = steps_floats(s, n * g->conv_dim), s->conv = steps_floats(s, n * g->conv_dim);
    s->z = steps_floats(s, n * values), s->heads = steps_floats(s, n * values);
    s->b = steps_floats(s, n * g->nv), s->a = steps_floats(s, n * g->nv);
    s->gate = steps_floats(s, n * g->intermediate), s->up = steps_floats(s, n * g->intermediate), s->open = steps_floats(s, n);
    if (attention) begin_attention(s);
}

void steps_end(GpuSteps *s)
{
    for (uint32_t i = 0; i < s->owned.n; i++) s->d->free(s->d, s->owned.data[i]);
    free(s->owned.data);
}

void steps_remember(GpuSteps *s, GpuLayer *l)
{
    const Geometry *g = &s->geo;
    size_t row = (size_t)g->kv_heads * g->head_dim;
    if (!l->full) l->state = steps_floats(s, (size_t)g->nv * g->dk * g->dv), l->history = steps_floats(s, (size_t)g->taps * g->conv_dim);
    else if (!l->idle) l->keys = steps_floats(s, s->positions * row), l->values = steps_floats(s, s->positions * row);
}

/* ---- steps ---- */
/* So many blocks have something to do. */
static uint32_t useful_blocks(const GpuSteps *s, DenseOp op, uint32_t n)
{
    const uint64_t most = 8 * s->d->processors, elements = ((uint64_t)n * s->room + 255) / 256, rows = (n + DENSE_ROWS - 1) / DENSE_ROWS;
    switch (op) {
    case DENSE_EMBED: case DENSE_ARGMAX: case STOCK_ARGMAX: return 1;
    case DENSE_NORM: case STOCK_EMBED: return s->room < most ? s->room : (uint32_t)most;
    case DENSE_HEADS: return n < s->d->processors ? n : s->d->processors;
    case STOCK_ATTEND: return attend_blocks(s);
    case STOCK_TURN: return n < most ? n : (uint32_t)most;
    case STOCK_PRODUCT: return (n + SIDE - 1) / SIDE * ((s->room + SIDE - 1) / SIDE);
    case DENSE_MUL: return rows < most ? (uint32_t)rows : (uint32_t)most;
    default: return elements < most ? (uint32_t)elements : (uint32_t)most;
    }
}

DenseStep *steps_add(GpuSteps *s, GpuList *list, DenseOp op, uint32_t n, const void *w, const float *x, float *y)
{
    DenseStep t = {.op = op, .blocks = useful_blocks(s, op, n), .bf16 = s->bf16, .half = s->bf16, .n = n, .eps = s->geo.eps, .now = s->now, .w = w, .x = x, .y = y};
    return &list->data[vec_push(list, t)];
}

DenseStep *steps_product(GpuSteps *s, GpuList *list, const GpuMatrix *m, const float *x, float *y, bool many)
{
    DenseStep *p = steps_add(s, list, many ? STOCK_PRODUCT : DENSE_MUL, m->rows, m->w, x, y);
    p->half = m->half, p->cols = m->cols, p->stride = steps_stride(m->cols);
    return p;
}

void steps_norm(GpuSteps *s, GpuList *list, const float *gain) { steps_add(s, list, DENSE_NORM, s->geo.hidden, gain, s->x, s->u); }

static void add_delta(GpuSteps *s, GpuList *list, const GpuLayer *l, bool many)
{
    const Geometry *g = &s->geo;
    steps_product(s, list, &l->m[T_QKV], s->u, s->qkv, many), steps_product(s, list, &l->m[T_Z], s->u, s->z, many);
    steps_product(s, list, &l->m[T_B], s->u, s->b, many), steps_product(s, list, &l->m[T_A], s->u, s->a, many);
    DenseStep *c = steps_add(s, list, DENSE_CONV, g->conv_dim, l->v[T_CONV], s->qkv, s->conv);
    c->taps = g->taps, c->state = l->history;
    DenseStep *h = steps_add(s, list, DENSE_HEADS, g->nv, l->v[T_NORM], s->conv, s->heads);
    h->nk = g->nk, h->nv = g->nv, h->dk = g->dk, h->dv = g->dv, h->eps = s->head_eps;
    h->b = s->b, h->a = s->a, h->z = s->z, h->state = l->state, h->alog = l->v[T_A_LOG], h->dt = l->v[T_DT_BIAS];
    steps_product(s, list, &l->m[T_OUT], s->heads, s->mix, many);
}

static DenseStep *add_attention_step(GpuSteps *s, GpuList *list, const GpuLayer *l, DenseOp op, uint32_t n, const float *x, float *y)
{
    const Geometry *g = &s->geo;
    DenseStep *t = steps_add(s, list, op, n, l->v[T_Q_NORM], x, y);
    t->heads = g->heads, t->kv = g->kv_heads, t->dim = g->head_dim, t->rot = turned_dims(g), t->room = s->positions;
    t->keys = l->keys, t->values = l->values;
    return t;
}

static void add_attention(GpuSteps *s, GpuList *list, const GpuLayer *l, bool many)
{
    const Geometry *g = &s->geo;
    steps_product(s, list, &l->m[T_Q_PROJ], s->u, s->queries, many);
    steps_product(s, list, &l->m[T_K_PROJ], s->u, s->key, many), steps_product(s, list, &l->m[T_V_PROJ], s->u, s->value, many);
    DenseStep *t = add_attention_step(s, list, l, STOCK_TURN, (g->heads + g->kv_heads) * (many ? s->room : 1), s->queries, s->turned);
    t->turn = s->turn, t->knorm = l->v[T_K_NORM], t->key = s->key, t->value = s->value;
    t = add_attention_step(s, list, l, STOCK_ATTEND, 0, s->turned, s->mixed);
    t->z = s->queries, t->score = s->score;
    steps_product(s, list, &l->m[T_O_PROJ], s->mixed, s->mix, many);
}

void steps_layer(GpuSteps *s, GpuList *list, const GpuLayer *l, bool many)
{
    const Geometry *g = &s->geo;
    if (!l->idle) {
        steps_norm(s, list, l->v[T_INPUT_NORM]);
        if (l->full) add_attention(s, list, l, many);
        else add_delta(s, list, l, many);
        steps_add(s, list, DENSE_ADD, g->hidden, NULL, s->mix, s->x);
    }
    steps_norm(s, list, l->v[T_POST_NORM]);
    steps_product(s, list, &l->m[T_GATE], s->u, s->gate, many), steps_product(s, list, &l->m[T_UP], s->u, s->up, many);
    steps_add(s, list, DENSE_GLU, g->intermediate, NULL, s->up, s->gate);
    steps_product(s, list, &l->m[T_DOWN], s->gate, s->mix, many);
    if (l->open.rows) {
        steps_product(s, list, &l->open, s->u, s->open, many);
        steps_add(s, list, STOCK_OPEN, g->hidden, NULL, s->open, s->mix);
    }
    steps_add(s, list, DENSE_ADD, g->hidden, NULL, s->mix, s->x);
}
