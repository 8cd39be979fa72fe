/* gpu_dense.c: the dense executor on a GPU as a back end for chips: every matrix in full (float32, or bfloat16 where the model is), a token as a list of steps that is built
 * once (gpu_steps.h), many tokens before the host looks. For chips in shapes of stock models, whose layers are to be computed as they stand; a chip alone runs
 * faster as planes (gpu_one.c). Models with an attention layer that remembers are refused. */
#include "gpu_steps.h"
#include <stdlib.h>

typedef struct {
    GpuSteps s;
    const Model *m;
    Pool *pool;
    GpuList list;
    GpuLayer *layer; /* [layers] */
    DenseNow *look;  /* here */
    DenseKind *kind; /* there */
    float *score;
    uint32_t next; /* of look->said, to be given out */
    void *plan;
} GpuDense;

/* ---- what lies there ---- */
static float *send_vector(GpuDense *s, const Tensor *t)
{
    Pool *p = pool_new();
    float *v = steps_send(&s->s, tensor_vector(p, t), (size_t)t->rows * t->cols * sizeof(float));
    pool_free(p);
    return v;
}

/* Rows of several tensors, one below the other, in the model's type. */
static void *send_rows(GpuDense *s, const Tensor *const *t, uint32_t n, uint32_t cols)
{
    uint32_t rows = 0, stride = steps_stride(cols), size = s->m->bf16 ? 2 : 4;
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
    void *p = steps_send(&s->s, all, (size_t)rows * stride * size);
    free(all);
    return p;
}

/* ---- a token's steps ---- */
static void open_layer(GpuDense *s, uint32_t i)
{
    GpuLayer *l = &s->layer[i];
    l->full = l->idle = s->m->layer[i].full;
    for (int id = 0; id < T_COUNT; id++) {
        const Tensor *t = &s->m->layer[i].t[id];
        if (!(model_tensor[id].scope & (l->full ? IN_FULL : IN_LINEAR)) || (l->idle && model_tensor[id].scope == IN_FULL)) continue;
        if (model_tensor[id].dims != 2) l->v[id] = send_vector(s, t);
        else l->m[id] = (GpuMatrix){send_rows(s, &t, 1, t->cols), s->m->bf16, t->rows, t->cols};
    }
    steps_remember(&s->s, l);
    steps_layer(&s->s, &s->list, l, false);
}

static void say_kinds(GpuDense *s, DenseStep *t)
{
    const Model *m = s->m;
    t->kind = s->kind, t->nkinds = m->nkinds, t->max_width = m->max_width, t->end = m->end, t->unused = m->end < m->geo.vocab;
    t->stride = steps_stride(m->geo.hidden);
}

static void add_all(GpuDense *s)
{
    const Model *m = s->m;
    const Tensor *embed[2] = {&m->embed_kind, &m->embed_bit}, *head[2] = {&m->head_kind, &m->head_bit};
    say_kinds(s, steps_add(&s->s, &s->list, DENSE_EMBED, m->geo.hidden, send_rows(s, embed, 2, m->geo.hidden), NULL, s->s.x));
    for (uint32_t i = 0; i < m->geo.layers; i++) open_layer(s, i);
    steps_norm(&s->s, &s->list, send_vector(s, &m->final_norm));
    GpuMatrix rows = {send_rows(s, head, 2, m->geo.hidden), m->bf16, m->nkinds * (1 + m->max_width), m->geo.hidden};
    steps_product(&s->s, &s->list, &rows, s->s.u, s->score, false)->plain = 1;
    say_kinds(s, steps_add(&s->s, &s->list, DENSE_ARGMAX, 1, NULL, s->score, NULL));
}

/* ---- opening ---- */
static void dense_close(void *self)
{
    GpuDense *s = self;
    s->s.d->forget(s->s.d, s->plan);
    steps_end(&s->s);
    free(s->list.data);
    pool_free(s->pool);
}

static void make_room(GpuDense *s)
{
    DenseKind *kind = pool_array(s->pool, s->m->nkinds, sizeof *kind);
    for (uint32_t i = 0; i < s->m->nkinds; i++) kind[i] = (DenseKind){s->m->kind[i].base, s->m->kind[i].width, s->m->kind[i].role != CHIP_TRACE && s->m->kind[i].role != CHIP_OUTPUT};
    s->kind = steps_send(&s->s, kind, s->m->nkinds * sizeof *kind);
    s->score = steps_floats(&s->s, (size_t)s->m->nkinds * (1 + s->m->max_width));
    steps_begin(&s->s, false);
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
    *s = (GpuDense){.m = m, .pool = p, .s = {.d = d, .geo = m->geo, .bf16 = m->bf16, .head_eps = m->geo.eps, .room = 1, .err = err}};
    s->layer = pool_array(p, m->geo.layers, sizeof *s->layer);
    s->look = pool_alloc(p, sizeof *s->look);
    make_room(s);
    add_all(s);
    if (!s->s.failed) return s;
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
    s->look->token = token, s->look->nsaid = s->look->stop = 0, s->look->count = 1;
    s->next = 0;
    check(s->s.d->put(s->s.d, s->s.now, s->look, offsetof(DenseNow, said), &err) && s->s.d->tokens(s->s.d, s->list.data, s->list.n, n, &s->plan, &err) &&
          s->s.d->get(s->s.d, s->look, s->s.now, sizeof *s->look, &err), &err);
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
    check(s->s.d->get(s->s.d, lanes, row_there(s, layer, head, row), s->m->geo.dv * sizeof *lanes, &err), &err);
}

static void dense_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    const GpuDense *s = self;
    char *err = NULL;
    check(s->s.d->put(s->s.d, row_there(s, layer, head, row), lanes, s->m->geo.dv * sizeof *lanes, &err), &err);
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
    check(s->s.d->get(s->s.d, raw, raw_there(s, layer, back), s->m->geo.conv_dim * sizeof *raw, &err), &err);
}

static void dense_remember(void *self, uint32_t layer, uint32_t back, const float *raw)
{
    const GpuDense *s = self;
    char *err = NULL;
    check(s->s.d->put(s->s.d, raw_there(s, layer, back), raw, s->m->geo.conv_dim * sizeof *raw, &err), &err);
}

const Backend cuda_dense_backend = {"cuda-dense", open_cuda, dense_run, dense_get, dense_set, dense_close, dense_recall, dense_remember, NULL};
const Backend cuda_host_dense_backend = {"cuda-host-dense", open_host, dense_run, dense_get, dense_set, dense_close, dense_recall, dense_remember, NULL};
