/* sparse.c: the embedded default: one core, only non-zero weights and active units.
 *
 * Needs what native chips have: pilots that make every norm's factor exactly 2^-K (checked when a chip is opened: the
 * pilots stand in every embedding, nothing writes them, and their squares alone give the factor; that data cannot disturb
 * it is part of the chip's proof). Then a norm is a change of unit, folded into the weights, and the pilots are biases.
 * A chip of any other kind is run by the dense back end. */
#include "sparse.h"
#include <stdlib.h>

typedef struct {
    Delta *delta;         /* linear layers */
    Attention *attention; /* full layers */
    const Basis *input;
    Mlp *mlp;
} SparseLayer;

/* The output head: each different row once; kinds whose payload bits have the same rows share a code. */
typedef struct {
    Forms forms;
    float *value;        /* [forms] scratch */
    uint32_t *kind_form; /* [nkinds] */
    uint32_t *bit_form;  /* [nkinds * max_width] */
    uint32_t *code_of;   /* [nkinds] first kind with the same payload rows */
    uint32_t *payload;   /* [nkinds] scratch, at first kinds */
    float *margin;
} SparseHead;

typedef struct {
    const Model *m;
    BackendOptions opt;
    Pool *pool;
    void *dense; /* set when the dense back end runs this chip */
    /* After a state was loaded: the dense back end runs the first tokens, until no convolution looks back beyond what this one has seen. */
    void *warm;
    float *lanes;    /* [2 dv] scratch */
    uint32_t warmed; /* tokens that it has run */
    float *pilot; /* [hidden] */
    uint32_t nbases;
    Basis *basis; /* one for each different norm */
    SparseLayer *layer;
    SparseHead head;
    Matrix kinds, bits; /* embedding */
    Stream s;
    float *u, *mix; /* [hidden] for attention layers and probes */
} Sparse;

/* ---- opening: norms ---- */
/* The basis of a norm; NULL when its gains are no powers of two. */
static const Basis *find_basis(Sparse *s, const Tensor *norm)
{
    float *gain = norm_gains(s->m, s->pool, s->pilot, norm);
    if (!gain) return NULL;
    for (uint32_t i = 0; i < s->nbases; i++)
        if (memcmp(s->basis[i].gain, gain, s->m->geo.hidden * sizeof *gain) == 0) return &s->basis[i];
    s->basis[s->nbases] = (Basis){s->pilot, gain};
    return &s->basis[s->nbases++];
}

/* ---- opening: the rest ---- */
static bool layer_make(Sparse *s, uint32_t i)
{
    const Layer *src = &s->m->layer[i];
    SparseLayer *l = &s->layer[i];
    const Basis *post = find_basis(s, &src->t[T_POST_NORM]);
    l->input = find_basis(s, &src->t[T_INPUT_NORM]);
    if (!l->input || !post || !(l->mlp = mlp_make(s->m, i, post, s->pool))) return false;
    if (src->full) return (l->attention = attention_make(s->m, i, s->pool, false, NULL)) != NULL;
    return (l->delta = delta_make(s->m, i, l->input, s->pool)) != NULL;
}

static bool same_code(const SparseHead *h, const Model *m, uint32_t a, uint32_t b)
{
    return m->kind[a].width == m->kind[b].width &&
           memcmp(h->bit_form + a * m->max_width, h->bit_form + b * m->max_width, m->kind[a].width * sizeof *h->bit_form) == 0;
}

static bool head_open(Sparse *s)
{
    const Model *m = s->m;
    SparseHead *h = &s->head;
    const Basis *basis = find_basis(s, &m->final_norm);
    Matrix kind, bit;
    uint32_t nbits = m->nkinds * m->max_width;
    if (!basis) return false;
    matrix_make(&kind, s->pool, &m->head_kind, false, NULL);
    matrix_make(&bit, s->pool, &m->head_bit, false, NULL);
    forms_init(&h->forms);
    h->kind_form = pool_array(s->pool, m->nkinds, sizeof *h->kind_form);
    h->bit_form = pool_array(s->pool, nbits, sizeof *h->bit_form);
    h->code_of = pool_array(s->pool, m->nkinds, sizeof *h->code_of);
    h->payload = pool_array(s->pool, m->nkinds, sizeof *h->payload);
    h->margin = pool_array(s->pool, m->nkinds, sizeof *h->margin);
    for (uint32_t k = 0; k < m->nkinds; k++)
        h->kind_form[k] = forms_add(&h->forms, basis, kind.col + kind.start[k], kind.value + kind.start[k], kind.start[k + 1] - kind.start[k], 1);
    for (uint32_t b = 0; b < nbits; b++)
        h->bit_form[b] = forms_add(&h->forms, basis, bit.col + bit.start[b], bit.value + bit.start[b], bit.start[b + 1] - bit.start[b], 1);
    for (uint32_t k = 0; k < m->nkinds; k++)
        while (!same_code(h, m, h->code_of[k], k)) h->code_of[k]++;
    h->value = pool_array(s->pool, h->forms.n, sizeof *h->value);
    return true;
}

static bool sparse_make(Sparse *s)
{
    const Model *m = s->m;
    uint32_t n = m->geo.hidden;
    s->pilot = pool_array(s->pool, n, sizeof *s->pilot);
    s->basis = pool_array(s->pool, 2 * (size_t)m->geo.layers + 1, sizeof *s->basis);
    s->layer = pool_array(s->pool, m->geo.layers, sizeof *s->layer);
    s->s = stream_new(s->pool, n);
    s->u = pool_array(s->pool, n, sizeof *s->u);
    s->mix = pool_array(s->pool, n, sizeof *s->mix);
    matrix_make(&s->kinds, s->pool, &m->embed_kind, false, NULL);
    matrix_make(&s->bits, s->pool, &m->embed_bit, false, NULL);
    if (!pilots_hold(m, s->pilot) || !head_open(s)) return false;
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (!layer_make(s, i)) return false;
    return true;
}

static void sparse_close(void *self)
{
    Sparse *s = self;
    if (s->dense) dense_backend.close(s->dense);
    if (s->warm) dense_backend.close(s->warm);
    for (uint32_t i = 0; s->layer && i < s->m->geo.layers; i++) {
        delta_close(s->layer[i].delta);
        attention_close(s->layer[i].attention);
        mlp_close(s->layer[i].mlp);
    }
    forms_free(&s->head.forms);
    pool_free(s->pool);
}

static void *sparse_open(const Model *m, const BackendOptions *o, char **err)
{
    if (!model_fits(m, err)) return NULL;
    Pool *p = pool_new();
    Sparse *s = pool_alloc(p, sizeof *s);
    simd_choose(o->plain);
    s->m = m;
    s->opt = *o;
    s->pool = p;
    if (sparse_make(s) || (s->dense = dense_backend.open(m, o, err)) != NULL) return s;
    sparse_close(s);
    return NULL;
}

/* ---- one token ---- */
static void embed_row(Sparse *s, const Matrix *m, uint32_t row)
{
    for (uint32_t i = m->start[row]; i < m->start[row + 1]; i++)
        if (s->pilot[m->col[i]] == 0) stream_put(&s->s, (uint32_t)m->col[i], m->value[i]);
}

static void embed(Sparse *s, uint32_t token)
{
    const ChipKind *k = model_kind(s->m, token);
    stream_clear(&s->s);
    if (!k) return;
    uint32_t index = (uint32_t)(k - s->m->kind);
    embed_row(s, &s->kinds, index);
    for (uint32_t p = token - k->base; p; p &= p - 1) embed_row(s, &s->bits, index * s->m->max_width + (uint32_t)__builtin_ctz(p));
    stream_settle(&s->s);
}

/* The residual with its pilots, as the dense back end has it. */
static const float *whole_residual(const Sparse *s, float *x)
{
    for (uint32_t c = 0; c < s->s.n; c++) x[c] = s->pilot[c] != 0 ? ldexpf(s->pilot[c], s->m->pilot_scale) : s->s.x[c];
    return x;
}

static void probe(Sparse *s, int layer, const char *what)
{
    if (s->opt.probe) s->opt.probe(s->opt.probe_ctx, layer, what, whole_residual(s, s->mix), s->s.n);
}

/* An attention layer that does something is computed in full; the no-op kind costs nothing. */
static void attend(Sparse *s, SparseLayer *l)
{
    for (uint32_t c = 0; c < s->s.n; c++) s->u[c] = cast(s->m->bf16, (s->pilot[c] != 0 ? s->pilot[c] : s->s.x[c]) * l->input->gain[c]);
    attention_step(l->attention, 1, s->u, s->mix);
    for (uint32_t c = 0; c < s->s.n; c++)
        if (s->mix[c] != 0) stream_put(&s->s, c, s->mix[c]);
    stream_settle(&s->s);
}

static uint32_t argmax(Sparse *s)
{
    const Model *m = s->m;
    SparseHead *h = &s->head;
    uint32_t best = 0;
    float top = -INFINITY;
    for (uint32_t i = 0; i < h->forms.n; i++) h->value[i] = form_value(&h->forms, i, s->s.x);
    for (uint32_t k = 0; k < m->nkinds; k++) {
        uint32_t first = h->code_of[k];
        if (first == k) {
            h->payload[k] = 0;
            h->margin[k] = 0;
            for (uint32_t i = 0; i < m->kind[k].width; i++) {
                float b = h->value[h->bit_form[k * m->max_width + i]];
                h->payload[k] |= (uint32_t)(b > 0) << i;
                h->margin[k] += fabsf(b);
            }
        }
        float score = cast(m->bf16, h->value[h->kind_form[k]] + h->margin[first]);
        if (score > top) {
            top = score;
            best = k;
        }
    }
    if (m->end < m->geo.vocab && top < 0) return m->end; /* an unused row's logit is 0 */
    return m->kind[best].base + h->payload[h->code_of[best]];
}

static uint32_t forward(Sparse *s, uint32_t token)
{
    embed(s, token);
    probe(s, -1, "embed");
    for (uint32_t i = 0; i < s->m->geo.layers; i++) {
        SparseLayer *l = &s->layer[i];
        if (l->delta) delta_step(l->delta, &s->s);
        else if (!attention_idle(l->attention)) attend(s, l);
        probe(s, (int)i, "mixer");
        mlp_step(l->mlp, &s->s);
        probe(s, (int)i, "mlp");
    }
    return argmax(s);
}

/* ---- the first tokens after a state was loaded ---- */
static void prime(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    Sparse *s = ctx;
    uint32_t next = (uint32_t)(layer + 1); /* whose input x is */
    (void)n;
    if (strcmp(what, "mixer") && next < s->m->geo.layers && s->layer[next].delta) delta_prime(s->layer[next].delta, (float *)x);
}

static void move_states(Sparse *s, bool to_warm)
{
    const Geometry *g = &s->m->geo;
    float *mine = s->lanes, *theirs = s->lanes + g->dv;
    for (uint32_t i = 0; i < g->layers; i++)
        for (uint32_t j = 0; s->layer[i].delta && j < g->nv * g->dk; j++) {
            uint32_t head = j / g->dk, row = j % g->dk;
            delta_get(s->layer[i].delta, head, row, mine);
            dense_backend.get(s->warm, i, head, row, theirs);
            if (!memcmp(mine, theirs, g->dv * sizeof *mine)) continue;
            if (to_warm) dense_backend.set(s->warm, i, head, row, mine);
            else delta_set(s->layer[i].delta, head, row, theirs);
        }
}

static uint32_t warm_run(Sparse *s, uint32_t token, uint32_t *out, uint32_t max)
{
    uint32_t n = 0, most = s->m->geo.taps - 1;
    const ChipKind *k = NULL;
    if (!s->warmed) move_states(s, true);
    while (n < max && s->warmed < most && (!k || k->role == CHIP_TRACE)) {
        dense_backend.run(s->warm, token, &out[n], 1);
        token = out[n++];
        s->warmed++;
        if (!(k = model_kind(s->m, token))) break;
    }
    if (s->warmed < most) return n;
    move_states(s, false);
    dense_backend.close(s->warm);
    s->warm = NULL;
    return n;
}

static void sparse_remember(void *self, uint32_t layer, uint32_t back, const float *raw)
{
    Sparse *s = self;
    BackendOptions o = {.probe = prime, .probe_ctx = s};
    if (!s->dense && !s->warm) {
        char *err = NULL;
        if (!(s->warm = dense_backend.open(s->m, &o, &err))) die("%s", err);
        s->warmed = 0;
        s->lanes = pool_array(s->pool, 2 * (size_t)s->m->geo.dv, sizeof *s->lanes);
    }
    dense_backend.remember(s->dense ? s->dense : s->warm, layer, back, raw);
}

static void sparse_recall(void *self, uint32_t layer, uint32_t back, float *raw)
{
    Sparse *s = self;
    if (s->dense || s->warm) dense_backend.recall(s->dense ? s->dense : s->warm, layer, back, raw);
    else delta_recall(s->layer[layer].delta, back, raw);
}

/* ---- the back end ---- */
static uint32_t sparse_run(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    Sparse *s = self;
    uint32_t n = 0;
    if (s->dense) return dense_backend.run(s->dense, token, out, max);
    if (s->warm && max) {
        n = warm_run(s, token, out, max);
        token = out[n - 1];
        const ChipKind *k = model_kind(s->m, token);
        if (!k || k->role != CHIP_TRACE) return n;
    }
    while (n < max) {
        out[n++] = token = forward(s, token);
        const ChipKind *k = model_kind(s->m, token);
        if (!k || k->role != CHIP_TRACE) return n;
    }
    return max;
}

static void sparse_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    Sparse *s = self;
    if (s->dense) dense_backend.get(s->dense, layer, head, row, lanes);
    else if (s->warm && s->warmed) dense_backend.get(s->warm, layer, head, row, lanes);
    else delta_get(s->layer[layer].delta, head, row, lanes);
}

static void sparse_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    Sparse *s = self;
    if (s->dense) dense_backend.set(s->dense, layer, head, row, lanes);
    else if (s->warm && s->warmed) dense_backend.set(s->warm, layer, head, row, lanes);
    else delta_set(s->layer[layer].delta, head, row, lanes);
}

/* ---- for adaptive.c ---- */
bool sparse_plain(const void *self)
{
    const Sparse *s = self;
    return !s->dense && !s->warm;
}

void sparse_watch(void *self, void (*probe)(void *ctx, int layer, const char *what, const float *x, uint32_t n), void *ctx)
{
    Sparse *s = self;
    s->opt.probe = probe;
    s->opt.probe_ctx = ctx;
}

void sparse_tell(void *self, uint32_t layer, float *x) { delta_prime(((Sparse *)self)->layer[layer].delta, x); }

const Backend sparse_backend = {"sparse", sparse_open, sparse_run, sparse_get, sparse_set, sparse_close, sparse_recall, sparse_remember, NULL};
