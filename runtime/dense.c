/* dense.c: the oracle: a chip's layers as dense.h computes them, one token at a time, with the factored output head. */
#include "dense.h"
#include <stdlib.h>

typedef struct {
    Dense d;
    const Model *m;
    Head *head;
} ChipDense;

/* ---- opening ---- */
static bool open_layer(ChipDense *s, uint32_t i, char **err)
{
    const Layer *src = &s->m->layer[i];
    DenseLayer *l = &s->d.layer[i];
    l->full = src->full;
    for (int id = 0; id < T_COUNT; id++) {
        const Tensor *t = &src->t[id];
        bool idle = id == T_O_PROJ && !t->n && t->fill == 0; /* so that it is seen */
        if (!(model_tensor[id].scope & (src->full ? IN_FULL : IN_LINEAR))) continue;
        if (model_tensor[id].dims != 2) l->v[id] = tensor_vector(s->d.pool, t);
        else if (!matrix_make(&l->m[id], s->d.pool, t, s->d.opt.full_dense && !idle, err)) return false;
    }
    return true;
}

static void dense_close(void *self)
{
    ChipDense *s = self;
    dense_end(&s->d);
    pool_free(s->d.pool);
}

static void *dense_open(const Model *m, const BackendOptions *o, char **err)
{
    if (!model_fits(m, err)) return NULL;
    Pool *p = pool_new();
    ChipDense *s = pool_alloc(p, sizeof *s);
    s->m = m;
    s->d = (Dense){.geo = m->geo, .bf16 = m->bf16, .head_eps = m->geo.eps, .opt = *o, .pool = p, .room = 1};
    s->d.layer = pool_array(p, m->geo.layers, sizeof *s->d.layer);
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (!open_layer(s, i, err)) {
            dense_close(s);
            return NULL;
        }
    s->d.final_norm = tensor_vector(p, &m->final_norm);
    s->head = head_make(m, p);
    dense_begin(&s->d);
    return s;
}

/* ---- running ---- */
static uint32_t argmax(ChipDense *s)
{
    uint32_t token = head_argmax(s->head, s->d.u);
    if (s->d.opt.full_head) {
        uint32_t full = head_argmax_full(s->head, s->d.u);
        if (full != token) {
            fprintf(stderr, "%s: pass %llu: the factored head says token %u, the whole vocabulary %u\n", s->m->path,
                    (unsigned long long)s->d.pos - 1, token, full);
            return UINT32_MAX; /* no kind's token: the machine stops */
        }
    }
    return token;
}

static uint32_t forward(ChipDense *s, uint32_t token)
{
    head_embed(s->m, token, s->d.x);
    dense_pass(&s->d, 1);
    return argmax(s);
}

static uint32_t dense_run(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    ChipDense *s = self;
    for (uint32_t n = 0; n < max;) {
        out[n++] = token = forward(s, token);
        const ChipKind *k = model_kind(s->m, token);
        if (!k || k->role != CHIP_TRACE) return n;
    }
    return max;
}

static float *row_of(const ChipDense *s, uint32_t layer, uint32_t head, uint32_t row)
{
    const Geometry *g = &s->m->geo;
    return s->d.layer[layer].state + ((size_t)head * g->dk + row) * g->dv;
}

static void dense_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    memcpy(lanes, row_of(self, layer, head, row), ((ChipDense *)self)->m->geo.dv * sizeof *lanes);
}

static void dense_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    memcpy(row_of(self, layer, head, row), lanes, ((ChipDense *)self)->m->geo.dv * sizeof *lanes);
}

/* The ring's place of the token `back` before the last one fed. */
static float *raw_of(const ChipDense *s, uint32_t layer, uint32_t back)
{
    const Geometry *g = &s->m->geo;
    return s->d.layer[layer].history + (s->d.pos + g->taps - 1 - back) % g->taps * g->conv_dim;
}

static void dense_recall(void *self, uint32_t layer, uint32_t back, float *raw)
{
    memcpy(raw, raw_of(self, layer, back), ((ChipDense *)self)->m->geo.conv_dim * sizeof *raw);
}

static void dense_remember(void *self, uint32_t layer, uint32_t back, const float *raw)
{
    memcpy(raw_of(self, layer, back), raw, ((ChipDense *)self)->m->geo.conv_dim * sizeof *raw);
}

const Backend dense_backend = {"dense", dense_open, dense_run, dense_get, dense_set, dense_close, dense_recall, dense_remember, NULL};
