/* gpu_dense.c: the dense executor on a GPU as a back end: every matrix in full (float32, or bfloat16 where the model is), a token as a list of steps that is built once
 * (gpu_dense.h), many tokens before the host looks. For chips in shapes of stock models, whose layers are to be computed as they stand; a chip alone runs
 * faster as planes (gpu_one.c). Models with an attention layer that remembers are refused. */
#include "gpu_dense.h"
#include "gpu.h"
#include "runtime.h"
#include <stdlib.h>

typedef struct {
    float *state, *history; /* there: [nv, dk, dv]; [taps, conv_dim] */
} DenseMemory;

typedef struct {
    const Model *m;
    GpuDevice *d;
    Pool *pool;
    VEC(DenseStep) step;
    VEC(void *) owned; /* there */
    DenseMemory *layer; /* [layers] */
    DenseNow *now, *look; /* there; here */
    DenseKind *kind;
    float *x, *u, *qkv, *conv, *z, *b, *a, *heads, *gate, *up, *mix, *score; /* there */
    uint32_t next; /* of look->said, to be given out */
    void *plan;
    char **err;
    bool failed;
} GpuDense;

/* ---- what lies there ---- */
static void *room(GpuDense *s, size_t bytes)
{
    void *p = s->failed ? NULL : s->d->alloc(s->d, bytes, s->err);
    if (!p) s->failed = true;
    else vec_push(&s->owned, p);
    return p;
}

static void *send(GpuDense *s, const void *data, size_t bytes)
{
    void *p = room(s, bytes);
    if (p && !s->d->put(s->d, p, data, bytes, s->err)) s->failed = true;
    return p;
}

static float *floats(GpuDense *s, size_t n) { return room(s, n * sizeof(float)); }

static float *send_vector(GpuDense *s, const Tensor *t)
{
    Pool *p = pool_new();
    float *v = send(s, tensor_vector(p, t), (size_t)t->rows * t->cols * sizeof(float));
    pool_free(p);
    return v;
}

static uint32_t stride_of(uint32_t cols) { return (cols + 7) / 8 * 8; }

/* Rows of several tensors, one below the other, in the model's type. */
static void *send_rows(GpuDense *s, const Tensor *const *t, uint32_t n, uint32_t cols)
{
    uint32_t rows = 0, stride = stride_of(cols), size = s->m->bf16 ? 2 : 4;
    for (uint32_t i = 0; i < n; i++) rows += t[i]->rows;
    uint8_t *all = calloc((size_t)rows * stride + 1, size), *row = all;
    if (!all) die("out of memory");
    for (uint32_t i = 0; i < n; i++) {
        for (size_t e = 0; t[i]->fill != 0 && e < (size_t)t[i]->rows * cols; e++) {
            float v = t[i]->fill;
            memcpy(row + (e / cols * stride + e % cols) * size, (const uint8_t *)&v + 4 - size, size); /* bfloat16 is the upper half */
        }
        for (uint32_t e = 0; e < t[i]->n; e++)
            memcpy(row + ((size_t)t[i]->row[e] * stride + (size_t)t[i]->col[e]) * size, (const uint8_t *)&t[i]->value[e] + 4 - size, size);
        row += (size_t)t[i]->rows * stride * size;
    }
    void *p = send(s, all, (size_t)rows * stride * size);
    free(all);
    return p;
}

/* ---- a token's steps ---- */
static DenseStep *add(GpuDense *s, DenseOp op, uint32_t n, const void *w, const float *x, float *y)
{
    uint32_t part = op == DENSE_MUL ? DENSE_ROWS : op == DENSE_HEADS ? 1 : 256, most = (op == DENSE_HEADS ? 1 : 8) * s->d->processors, blocks = (n + part - 1) / part;
    if (op == DENSE_EMBED || op == DENSE_NORM || op == DENSE_ARGMAX) blocks = 1;
    DenseStep t = {.op = op, .blocks = blocks < most ? blocks : most, .bf16 = s->m->bf16, .n = n, .eps = s->m->geo.eps, .now = s->now, .w = w, .x = x, .y = y};
    return &s->step.data[vec_push(&s->step, t)];
}

static DenseStep *add_product(GpuDense *s, const Tensor *t, const float *x, float *y)
{
    DenseStep *p = add(s, DENSE_MUL, t->rows, send_rows(s, &t, 1, t->cols), x, y);
    p->cols = t->cols, p->stride = stride_of(t->cols);
    return p;
}

static void add_delta(GpuDense *s, const Tensor *t, DenseMemory *l)
{
    const Geometry *g = &s->m->geo;
    l->state = floats(s, (size_t)g->nv * g->dk * g->dv), l->history = floats(s, (size_t)g->taps * g->conv_dim);
    add_product(s, &t[T_QKV], s->u, s->qkv), add_product(s, &t[T_Z], s->u, s->z), add_product(s, &t[T_B], s->u, s->b), add_product(s, &t[T_A], s->u, s->a);
    DenseStep *c = add(s, DENSE_CONV, g->conv_dim, send_vector(s, &t[T_CONV]), s->qkv, s->conv);
    c->taps = g->taps, c->state = l->history;
    DenseStep *h = add(s, DENSE_HEADS, g->nv, send_vector(s, &t[T_NORM]), s->conv, s->heads);
    h->nk = g->nk, h->nv = g->nv, h->dk = g->dk, h->dv = g->dv;
    h->b = s->b, h->a = s->a, h->z = s->z, h->state = l->state, h->alog = send_vector(s, &t[T_A_LOG]), h->dt = send_vector(s, &t[T_DT_BIAS]);
    add_product(s, &t[T_OUT], s->heads, s->mix);
    add(s, DENSE_ADD, g->hidden, NULL, s->mix, s->x);
}

static void add_layer(GpuDense *s, uint32_t i)
{
    const Geometry *g = &s->m->geo;
    const Tensor *t = s->m->layer[i].t;
    if (!s->m->layer[i].full) {
        add(s, DENSE_NORM, g->hidden, send_vector(s, &t[T_INPUT_NORM]), s->x, s->u);
        add_delta(s, t, &s->layer[i]);
    }
    add(s, DENSE_NORM, g->hidden, send_vector(s, &t[T_POST_NORM]), s->x, s->u);
    add_product(s, &t[T_GATE], s->u, s->gate), add_product(s, &t[T_UP], s->u, s->up);
    add(s, DENSE_GLU, g->intermediate, NULL, s->up, s->gate);
    add_product(s, &t[T_DOWN], s->gate, s->mix);
    add(s, DENSE_ADD, g->hidden, NULL, s->mix, s->x);
}

static void say_kinds(GpuDense *s, DenseStep *t)
{
    const Model *m = s->m;
    t->kind = s->kind, t->nkinds = m->nkinds, t->max_width = m->max_width, t->end = m->end, t->unused = m->end < m->geo.vocab;
    t->stride = stride_of(m->geo.hidden);
}

static void add_all(GpuDense *s)
{
    const Model *m = s->m;
    const Tensor *embed[2] = {&m->embed_kind, &m->embed_bit}, *head[2] = {&m->head_kind, &m->head_bit};
    uint32_t rows = m->nkinds * (1 + m->max_width);
    say_kinds(s, add(s, DENSE_EMBED, m->geo.hidden, send_rows(s, embed, 2, m->geo.hidden), NULL, s->x));
    for (uint32_t i = 0; i < m->geo.layers; i++) add_layer(s, i);
    add(s, DENSE_NORM, m->geo.hidden, send_vector(s, &m->final_norm), s->x, s->u);
    DenseStep *p = add(s, DENSE_MUL, rows, send_rows(s, head, 2, m->geo.hidden), s->u, s->score);
    p->cols = m->geo.hidden, p->stride = stride_of(m->geo.hidden), p->plain = 1;
    say_kinds(s, add(s, DENSE_ARGMAX, 1, NULL, s->score, NULL));
}

/* ---- opening ---- */
static void dense_close(void *self)
{
    GpuDense *s = self;
    s->d->forget(s->d, s->plan);
    for (uint32_t i = 0; i < s->owned.n; i++) s->d->free(s->d, s->owned.data[i]);
    free(s->owned.data);
    free(s->step.data);
    pool_free(s->pool);
}

static void make_room(GpuDense *s)
{
    const Geometry *g = &s->m->geo;
    DenseKind *kind = pool_array(s->pool, s->m->nkinds, sizeof *kind);
    for (uint32_t i = 0; i < s->m->nkinds; i++) kind[i] = (DenseKind){s->m->kind[i].base, s->m->kind[i].width, s->m->kind[i].role != CHIP_TRACE && s->m->kind[i].role != CHIP_OUTPUT};
    s->kind = send(s, kind, s->m->nkinds * sizeof *kind);
    s->now = room(s, sizeof *s->now);
    s->x = floats(s, g->hidden), s->u = floats(s, g->hidden), s->mix = floats(s, g->hidden);
    s->qkv = floats(s, g->conv_dim), s->conv = floats(s, g->conv_dim), s->z = floats(s, (size_t)g->nv * g->dv), s->heads = floats(s, (size_t)g->nv * g->dv);
    s->b = floats(s, g->nv), s->a = floats(s, g->nv), s->gate = floats(s, g->intermediate), s->up = floats(s, g->intermediate);
    s->score = floats(s, (size_t)s->m->nkinds * (1 + s->m->max_width));
}

static bool remembers(const Model *m)
{
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (m->layer[i].full && (m->layer[i].t[T_O_PROJ].n || m->layer[i].t[T_O_PROJ].fill != 0)) return true;
    return false;
}

static void *open_on(const char *name, const Model *m, char **err)
{
    GpuDevice *d = gpu_device(name, err);
    if (!d || !model_fits(m, err)) return NULL;
    if (remembers(m)) return fail(err, "%s: back end %s-dense has no attention layers that remember", m->path, name), NULL;
    Pool *p = pool_new();
    GpuDense *s = pool_alloc(p, sizeof *s);
    *s = (GpuDense){.m = m, .d = d, .pool = p, .err = err};
    s->layer = pool_array(p, m->geo.layers, sizeof *s->layer);
    s->look = pool_alloc(p, sizeof *s->look);
    make_room(s);
    add_all(s);
    if (!s->failed) return s;
    dense_close(s);
    return NULL;
}

static void *open_cuda(const Model *m, const BackendOptions *o, char **err) { return (void)o, open_on("cuda", m, err); }
static void *open_host(const Model *m, const BackendOptions *o, char **err) { return (void)o, open_on("cuda-host", m, err); }

/* ---- running ---- */
/* Nothing that was possible before can fail now but the device itself. */
static void check(bool ok, char *const *err)
{
    if (!ok) die("%s", *err);
}

static void run_tokens(GpuDense *s, uint32_t token, uint32_t n)
{
    char *err = NULL;
    s->look->token = token, s->look->nsaid = s->look->stop = 0;
    s->next = 0;
    check(s->d->put(s->d, s->now, s->look, offsetof(DenseNow, said), &err) && s->d->tokens(s->d, s->step.data, s->step.n, n, &s->plan, &err) &&
          s->d->get(s->d, s->look, s->now, sizeof *s->look, &err), &err);
}

/* Tokens after console output are said in the same go, and given out when they are asked for. */
static uint32_t dense_run(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    GpuDense *s = self;
    uint32_t n = 0;
    if (s->next == s->look->nsaid) run_tokens(s, token, max < DENSE_SAID ? max : DENSE_SAID);
    while (n < max && s->next < s->look->nsaid) {
        const ChipKind *k = model_kind(s->m, out[n++] = s->look->said[s->next++]);
        if (!k || k->role != CHIP_TRACE) break;
    }
    return n;
}

/* ---- state ---- */
static float *row_there(const GpuDense *s, uint32_t layer, uint32_t head, uint32_t row)
{
    return s->layer[layer].state + ((size_t)head * s->m->geo.dk + row) * s->m->geo.dv;
}

static void dense_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    const GpuDense *s = self;
    char *err = NULL;
    check(s->d->get(s->d, lanes, row_there(s, layer, head, row), s->m->geo.dv * sizeof *lanes, &err), &err);
}

static void dense_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    const GpuDense *s = self;
    char *err = NULL;
    check(s->d->put(s->d, row_there(s, layer, head, row), lanes, s->m->geo.dv * sizeof *lanes, &err), &err);
}

/* The ring's place of the token `back` before the last one fed. */
static float *raw_there(const GpuDense *s, uint32_t layer, uint32_t back)
{
    const Geometry *g = &s->m->geo;
    return s->layer[layer].history + (size_t)(s->look->pos + g->taps - 1 - back) % g->taps * g->conv_dim;
}

static void dense_recall(void *self, uint32_t layer, uint32_t back, float *raw)
{
    const GpuDense *s = self;
    char *err = NULL;
    check(s->d->get(s->d, raw, raw_there(s, layer, back), s->m->geo.conv_dim * sizeof *raw, &err), &err);
}

static void dense_remember(void *self, uint32_t layer, uint32_t back, const float *raw)
{
    const GpuDense *s = self;
    char *err = NULL;
    check(s->d->put(s->d, raw_there(s, layer, back), raw, s->m->geo.conv_dim * sizeof *raw, &err), &err);
}

const Backend cuda_dense_backend = {"cuda-dense", open_cuda, dense_run, dense_get, dense_set, dense_close, dense_recall, dense_remember, NULL};
const Backend cuda_host_dense_backend = {"cuda-host-dense", open_host, dense_run, dense_get, dense_set, dense_close, dense_recall, dense_remember, NULL};
