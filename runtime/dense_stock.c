/* dense_stock.c: a checkpoint as the layers of dense.h. Matrices stay in the mapped files, a pointer a row, in the order that the layers want (stock.def
 * says where each row comes from); the small tensors are copied. What an export fills with zeros must be zeros: no layer here would compute it. */
#include "dense.h"
#include <stdlib.h>

typedef struct {
    const Checkpoint *k;
    Pool *pool;
    char **err;
    float *row;      /* scratch for one row */
    uint32_t number; /* of the layer */
    const StTensor *last[T_COUNT]; /* of the layer: the tensor that rows came from */
} Opening;

/* A tensor's rows and columns, as stock.def counts them. */
static void sizes(const StTensor *t, uint64_t *rows, uint64_t *cols)
{
    *rows = t->shape[0];
    *cols = t->ndim == 1 ? 1 : t->shape[t->ndim - 1];
    if (t->ndim == 3) *rows *= t->shape[1];
}

static bool refuse(const Opening *o, const char *name, const char *why) { return fail(o->err, "%s: layer %u, %s: %s", o->k->dir, o->number, name, why); }

static Matrix stored(const Opening *o, uint32_t rows, uint32_t cols)
{
    return (Matrix){.rows = rows, .cols = cols, .stored = pool_array(o->pool, rows, sizeof(uint8_t *))};
}

/* Row `to` of the matrix is row r of the tensor. */
static void put_row(const Opening *o, Matrix *m, uint32_t to, const StTensor *t, uint64_t r)
{
    m->half = t->dtype == ST_BF16;
    m->round = o->k->bf16 && !m->half;
    ((const uint8_t **)m->stored)[to] = t->data + r * m->cols * (m->half ? 2 : 4);
}

/* Elements of a small tensor in the model's type, less what the family adds to the chip's. */
static bool take_vector(const Opening *o, float *out, const StTensor *t, uint64_t at, uint64_t n, float add)
{
    st_read(t, at, n, out);
    for (uint64_t i = 0; i < n; i++) {
        float w = cast(o->k->bf16, out[i]);
        out[i] = w - add;
        if (w != w) return fail(o->err, "%s: tensor \"%s\": element %llu is no number", o->k->dir, t->name, (unsigned long long)(at + i));
        if (out[i] + add != w) return fail(o->err, "%s: tensor \"%s\": %g less %g is not exact", o->k->dir, t->name, (double)w, (double)add);
    }
    return true;
}

static bool take_zeros(const Opening *o, const FamilyTensor *s, const StTensor *t, uint64_t r, uint64_t cols)
{
    st_read(t, r * cols, cols, o->row);
    for (uint64_t i = 0; i < cols; i++)
        if (o->row[i] != family_add(o->k->family, s)) return refuse(o, s->name, "it is not as in a chip's export, where it does nothing: this part of the family is not run");
    return true;
}

static bool take_row(Opening *o, DenseLayer *l, const FamilyTensor *s, const StTensor *t, uint64_t r, uint64_t cols)
{
    From f = s->from(&o->k->geo, (uint32_t)r);
    if (f.what == FROM_ZERO) return take_zeros(o, s, t, r, cols);
    if (f.what == FROM_CHIP && o->last[f.id] && o->last[f.id]->dtype != t->dtype) return refuse(o, s->name, "its type is not that of the tensors it is computed with");
    if (f.what == FROM_CHIP) o->last[f.id] = t;
    if (f.what == FROM_CHIP && l->v[f.id]) return take_vector(o, (float *)l->v[f.id] + f.row * cols, t, r * cols, cols, family_add(o->k->family, s));
    if (f.what == FROM_PILOT) {
        l->open = stored(o, 1, (uint32_t)cols);
        put_row(o, &l->open, 0, t, r);
        return true;
    }
    put_row(o, &l->m[f.id], f.row, t, r);
    return true;
}

static bool take_tensor(Opening *o, DenseLayer *l, const FamilyTensor *s)
{
    char name[128];
    uint64_t rows, cols;
    snprintf(name, sizeof name, "model.layers.%u.%s", o->number, s->name);
    const StTensor *t = checkpoint_tensor(o->k, name);
    sizes(t, &rows, &cols);
    for (uint64_t r = 0; r < rows; r++)
        if (!take_row(o, l, s, t, r, cols)) return false;
    return true;
}

/* OLMo-Hybrid's attention layers norm what a block puts out: in an export they do nothing, and of their tensors only the MLP's come from a chip. */
static bool finish_layer(const Opening *o, DenseLayer *l)
{
    const Matrix *down = &l->m[T_DOWN];
    for (int id = 0; id < T_COUNT; id++)
        if (l->m[id].stored && !o->last[id]) l->m[id] = (Matrix){.rows = l->m[id].rows, .cols = l->m[id].cols, .start = pool_array(o->pool, l->m[id].rows + 1, sizeof *l->m[id].start)};
    for (uint32_t r = 0; r < down->rows && !o->last[T_POST_NORM]; r++) {
        stored_row(down, r, o->row);
        for (uint32_t i = 0; i < down->cols; i++)
            if (o->row[i] != 0) return refuse(o, "its MLP", "it does something between norms that are not run");
    }
    return true;
}

static bool open_layer(Opening *o, DenseLayer *l)
{
    LayerScope scope = o->k->full[o->number] ? IN_FULL : IN_LINEAR;
    l->full = scope == IN_FULL;
    memset(o->last, 0, sizeof o->last);
    for (int id = 0; id < T_COUNT; id++) {
        uint32_t shape[2];
        if (!(model_tensor[id].scope & scope)) continue;
        model_shape(&o->k->geo, (TensorId)id, shape);
        if (model_tensor[id].dims != 2) l->v[id] = pool_array(o->pool, (size_t)shape[0] * shape[1], sizeof(float));
        else l->m[id] = stored(o, shape[0], shape[1]);
    }
    for (unsigned i = 0; i < nfamily_tensors; i++)
        if (family_tensors[i].families & o->k->family->bit && family_tensors[i].scope & scope && !take_tensor(o, l, &family_tensors[i])) return false;
    return finish_layer(o, l);
}

/* A matrix of the vocabulary. */
static void open_vocabulary(const Opening *o, Matrix *m, const char *name)
{
    const StTensor *t = checkpoint_tensor(o->k, name);
    *m = stored(o, o->k->geo.vocab, o->k->geo.hidden);
    for (uint32_t r = 0; r < m->rows; r++) put_row(o, m, r, t, r);
}

static bool open_norm(const Opening *o, Dense *d)
{
    float *norm = pool_array(o->pool, o->k->geo.hidden, sizeof *norm);
    d->final_norm = norm;
    return take_vector(o, norm, checkpoint_tensor(o->k, "model.norm.weight"), 0, o->k->geo.hidden, o->k->family->norm_add);
}

bool stock_dense_open(StockDense *s, const Checkpoint *k, uint32_t room, char **err)
{
    const Geometry *g = &k->geo;
    *s = (StockDense){.k = k};
    if (!geometry_fits(g, k->dir, err)) return false;
    Pool *p = pool_new();
    s->d = (Dense){.geo = *g, .bf16 = k->bf16, .head_eps = k->family->head_eps != 0 ? k->family->head_eps : g->eps, .pool = p, .room = room};
    s->d.layer = pool_array(p, g->layers, sizeof *s->d.layer);
    uint64_t widest = g->hidden + g->intermediate + (uint64_t)g->nv * g->dv + 2ull * g->heads * g->head_dim + g->conv_dim;
    Opening o = {.k = k, .pool = p, .err = err, .row = pool_array(p, widest, sizeof(float))};
    for (; o.number < g->layers; o.number++)
        if (!open_layer(&o, &s->d.layer[o.number])) return false;
    open_vocabulary(&o, &s->embed, "model.embed_tokens.weight");
    open_vocabulary(&o, &s->head, k->tied ? "model.embed_tokens.weight" : "lm_head.weight");
    if (!open_norm(&o, &s->d)) return false;
    if (room) dense_begin(&s->d);
    return true;
}

void stock_dense_close(StockDense *s)
{
    if (!s->d.pool) return;
    dense_end(&s->d);
    pool_free(s->d.pool);
}

/* ---- as a back end ---- */
typedef struct {
    StockDense s;
    float *logits; /* [vocab] */
} Running;

static void running_close(void *self)
{
    Running *r = self;
    stock_dense_close(&r->s);
    free(r->logits);
    free(r);
}

static void *running_open(const Checkpoint *k, uint32_t room, uint64_t positions, char **err)
{
    (void)positions;
    Running *r = xrealloc(NULL, sizeof *r);
    r->logits = xrealloc(NULL, k->geo.vocab * sizeof *r->logits);
    if (stock_dense_open(&r->s, k, room, err)) return r;
    running_close(r);
    return NULL;
}

/* The first of the largest. */
static uint32_t largest(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best] || x[best] != x[best]) best = i;
    return best;
}

static bool running_feed(void *self, const uint32_t *token, uint32_t n, float *logits, uint32_t *next, char **err)
{
    Running *r = self;
    Dense *d = &r->s.d;
    const Geometry *g = &d->geo;
    for (uint32_t t = 0; t < n; t++) stored_row(&r->s.embed, token[t], d->x + (size_t)t * g->hidden);
    dense_pass(d, n);
    float *last = logits ? logits + (size_t)(n - 1) * g->vocab : r->logits;
    if (logits) matrix_mul(&r->s.head, d->bf16, n, d->u, logits);
    else matrix_mul(&r->s.head, d->bf16, 1, d->u + (size_t)(n - 1) * g->hidden, last);
    *next = largest(last, g->vocab);
    return isfinite(last[*next]) || fail(err, "%s: token %llu: its logits are no numbers", r->s.k->dir, (unsigned long long)d->pos - 1);
}

const StockBackend stock_dense_backend = {"dense", 64, running_open, running_feed, running_close};
