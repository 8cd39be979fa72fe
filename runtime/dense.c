/* dense.c: the oracle. Plain loops in the stock Qwen3.5 layer's exact order of operations and rounding, one token at a
 * time (the recurrent form), for float32 and bfloat16 models.
 *
 * T is the model's dtype; cast() stands wherever the stock layer holds a value in T. The float32 islands are the norms,
 * the l2 norm (after the cast), the recurrence with its state, and the gated norm up to its first cast.
 * Shortcuts, none of which changes a bit of any finite result (but possibly the sign of a zero in the state): zero
 * weights are skipped (matrix.c), rows of the state whose key or query entry is zero are skipped, a decay of exactly 1 is
 * not multiplied, and a no-op attention layer is not run. `full_dense` turns the first two off. */
#include "runtime.h"
#include <stdlib.h>

#define L2_EPS 1e-6f /* fixed in the stock layer, not rms_norm_eps */

typedef struct {
    const float *input_norm, *post_norm;
    Matrix gate, up, down;
    /* linear layers */
    Matrix qkv, z, b, a, out;
    const float *conv, *a_log, *dt_bias, *norm;
    float *history; /* [taps, conv_dim]: raw qkv of the last tokens, a ring */
    float *state;   /* [nv, dk, dv] */
    Attention *attention;
} DenseLayer;

typedef struct {
    const Model *m;
    BackendOptions opt;
    Pool *pool;
    DenseLayer *layer;
    const float *final_norm;
    Head *head;
    uint64_t pos; /* tokens fed so far */
    float *x, *u, *mix;           /* [hidden] */
    float *qkv;                   /* [conv_dim] after conv and SiLU */
    float *z, *heads_out;         /* [nv * dv] */
    float *b, *a;                 /* [nv] */
    float *gate, *up;             /* [intermediate] */
    float *q, *k, *r, *d, *o;     /* one head: [dk] [dk] [dv] [dv] [dv] */
    uint32_t *q_rows, *k_rows, nq, nk; /* where q and k are not zero */
} Dense;

/* ---- opening ---- */
static bool open_linear(Dense *s, DenseLayer *l, const Tensor *t, char **err)
{
    const Geometry *g = &s->m->geo;
    bool full = s->opt.full_dense;
    Pool *p = s->pool;
    if (!matrix_make(&l->qkv, p, &t[T_QKV], full, err) || !matrix_make(&l->z, p, &t[T_Z], full, err) ||
        !matrix_make(&l->b, p, &t[T_B], full, err) || !matrix_make(&l->a, p, &t[T_A], full, err) ||
        !matrix_make(&l->out, p, &t[T_OUT], full, err))
        return false;
    l->conv = tensor_vector(p, &t[T_CONV]);
    l->a_log = tensor_vector(p, &t[T_A_LOG]);
    l->dt_bias = tensor_vector(p, &t[T_DT_BIAS]);
    l->norm = tensor_vector(p, &t[T_NORM]);
    l->history = pool_array(p, (size_t)g->taps * g->conv_dim, sizeof(float));
    l->state = pool_array(p, (size_t)g->nv * g->dk * g->dv, sizeof(float));
    return true;
}

static bool open_layer(Dense *s, uint32_t i, char **err)
{
    const Layer *src = &s->m->layer[i];
    DenseLayer *l = &s->layer[i];
    const Tensor *t = src->t;
    bool full = s->opt.full_dense;
    l->input_norm = tensor_vector(s->pool, &t[T_INPUT_NORM]);
    l->post_norm = tensor_vector(s->pool, &t[T_POST_NORM]);
    if (!matrix_make(&l->gate, s->pool, &t[T_GATE], full, err) || !matrix_make(&l->up, s->pool, &t[T_UP], full, err) ||
        !matrix_make(&l->down, s->pool, &t[T_DOWN], full, err))
        return false;
    if (!src->full) return open_linear(s, l, t, err);
    return (l->attention = attention_make(s->m, i, s->pool, full, err)) != NULL;
}

static float *floats(Dense *s, size_t n) { return pool_array(s->pool, n, sizeof(float)); }

static void open_scratch(Dense *s)
{
    const Geometry *g = &s->m->geo;
    s->x = floats(s, g->hidden), s->u = floats(s, g->hidden), s->mix = floats(s, g->hidden);
    s->qkv = floats(s, g->conv_dim);
    s->z = floats(s, (size_t)g->nv * g->dv), s->heads_out = floats(s, (size_t)g->nv * g->dv);
    s->b = floats(s, g->nv), s->a = floats(s, g->nv);
    s->gate = floats(s, g->intermediate), s->up = floats(s, g->intermediate);
    s->q = floats(s, g->dk), s->k = floats(s, g->dk);
    s->q_rows = pool_array(s->pool, g->dk, sizeof *s->q_rows), s->k_rows = pool_array(s->pool, g->dk, sizeof *s->k_rows);
    s->r = floats(s, g->dv), s->d = floats(s, g->dv), s->o = floats(s, g->dv);
}

static void dense_close(void *self)
{
    Dense *s = self;
    for (uint32_t i = 0; i < s->m->geo.layers; i++) attention_close(s->layer[i].attention);
    pool_free(s->pool);
}

static void *dense_open(const Model *m, const BackendOptions *o, char **err)
{
    if (!model_fits(m, err)) return NULL;
    Pool *p = pool_new();
    Dense *s = pool_alloc(p, sizeof *s);
    s->m = m;
    s->opt = *o;
    s->pool = p;
    s->layer = pool_array(p, m->geo.layers, sizeof *s->layer);
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (!open_layer(s, i, err)) {
            dense_close(s);
            return NULL;
        }
    s->final_norm = tensor_vector(p, &m->final_norm);
    s->head = head_make(m, p);
    open_scratch(s);
    return s;
}

/* ---- one token ---- */
/* Depthwise causal convolution over the raw projections, then SiLU, both in T. Tap taps-1 multiplies the current token. */
static void convolve(Dense *s, DenseLayer *l)
{
    const Geometry *g = &s->m->geo;
    for (uint32_t c = 0; c < g->conv_dim; c++) {
        float sum = 0;
        for (uint32_t j = 0; j < g->taps; j++) {
            uint64_t slot = (s->pos + 1 + j) % g->taps; /* the token taps-1-j back; zeros before the first */
            sum += l->conv[(size_t)c * g->taps + j] * l->history[slot * g->conv_dim + c];
        }
        sum = cast(s->m->bf16, sum);
        s->qkv[c] = cast(s->m->bf16, siluf(sum));
    }
}

/* x / sqrt(sum x^2 + eps), float32. */
static void l2_norm(const Dense *s, const float *x, float *y)
{
    uint32_t n = s->m->geo.dk;
    float sum = 0, eps = s->opt.faults & FAULT_L2_MEAN ? L2_EPS * (float)n : L2_EPS;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    float r = rsqrtf(sum + eps);
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * r;
}

/* The rows that a key or query reaches; all of them with full_dense. */
static uint32_t reached_rows(const Dense *s, const float *k, uint32_t *rows)
{
    uint32_t n = 0;
    for (uint32_t row = 0; row < s->m->geo.dk; row++)
        if (k[row] != 0 || s->opt.full_dense) rows[n++] = row;
    return n;
}

/* out[lane] = sum over rows of k[row] * S[row, lane], in order of rows. */
static void read_rows(const Dense *s, const float *state, const float *k, const uint32_t *rows, uint32_t n, float *out)
{
    uint32_t dv = s->m->geo.dv;
    memset(out, 0, dv * sizeof *out);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t lane = 0; lane < dv; lane++) out[lane] += state[(size_t)rows[i] * dv + lane] * k[rows[i]];
}

static void write_rows(const Dense *s, float *state, const float *d)
{
    uint32_t dv = s->m->geo.dv;
    for (uint32_t r = 0; r < s->nk; r++) {
        float *cell = state + (size_t)s->k_rows[r] * dv, k = s->k[s->k_rows[r]];
        for (uint32_t i = 0; i < dv; i++) cell[i] = cell[i] + k * d[i];
        for (uint32_t i = 0; s->opt.faults & FAULT_STATE_BF16 && i < dv; i++) cell[i] = bf16_round(cell[i]);
    }
}

static void decay_state(const Dense *s, float *state, float factor)
{
    size_t n = (size_t)s->m->geo.dk * s->m->geo.dv;
    if (factor == 1.0f) return;
    for (size_t i = 0; i < n; i++) state[i] *= factor;
}

/* The delta rule for one value head: decay, read at the key, write the correction, then read at the query. */
static void delta_rule(Dense *s, float *state, float decay, float beta, const float *v)
{
    uint32_t dv = s->m->geo.dv;
    decay_state(s, state, decay);
    read_rows(s, state, s->k, s->k_rows, s->nk, s->r);
    for (uint32_t i = 0; i < dv; i++) s->d[i] = (v[i] - s->r[i]) * beta;
    write_rows(s, state, s->d);
    read_rows(s, state, s->q, s->q_rows, s->nq, s->o);
}

/* RMSNorm over the head in float32, cast, gain in T, then times silu(z) in float32, cast. */
static void gated_norm(const Dense *s, const float *o, const float *w, const float *z, float *y)
{
    uint32_t dv = s->m->geo.dv;
    bool bf16 = s->m->bf16;
    float sum = 0;
    for (uint32_t i = 0; i < dv; i++) sum += o[i] * o[i];
    float r = rsqrtf(sum / (float)dv + s->m->geo.eps);
    for (uint32_t i = 0; i < dv; i++) {
        float n = cast(bf16, w[i] * cast(bf16, o[i] * r));
        y[i] = cast(bf16, n * siluf(z[i]));
    }
}

static void run_heads(Dense *s, DenseLayer *l)
{
    const Geometry *g = &s->m->geo;
    uint32_t share = g->nv / g->nk;
    bool bf16 = s->m->bf16;
    float scale = sqrtf((float)g->dk);
    for (uint32_t j = 0; j < g->nv; j++) {
        uint32_t kh = j / share;
        if (j % share == 0) { /* the key head's vectors serve all its value heads */
            l2_norm(s, s->qkv + kh * g->dk, s->q);
            l2_norm(s, s->qkv + (g->nk + kh) * g->dk, s->k);
            for (uint32_t i = 0; i < g->dk; i++) s->q[i] /= scale;
            s->nq = reached_rows(s, s->q, s->q_rows);
            s->nk = reached_rows(s, s->k, s->k_rows);
        }
        float beta = cast(bf16, sigmoidf(s->b[j]));
        float decay = expf(-expf(l->a_log[j]) * softplusf(s->a[j] + l->dt_bias[j]));
        delta_rule(s, l->state + (size_t)j * g->dk * g->dv, decay, beta, s->qkv + 2 * g->nk * g->dk + j * g->dv);
        for (uint32_t i = 0; i < g->dv; i++) s->o[i] = cast(bf16, s->o[i]);
        gated_norm(s, s->o, l->norm, s->z + j * g->dv, s->heads_out + j * g->dv);
    }
}

static void drop_state(Dense *s, DenseLayer *l)
{
    const Geometry *g = &s->m->geo;
    if (s->opt.faults & FAULT_DROP_STATE) memset(l->state, 0, (size_t)g->nv * g->dk * g->dv * sizeof(float));
    memset(l->history, 0, (size_t)g->taps * g->conv_dim * sizeof(float));
}

static bool mixer(Dense *s, DenseLayer *l)
{
    const Geometry *g = &s->m->geo;
    bool bf16 = s->m->bf16;
    if (l->attention) return attention_step(l->attention, s->u, s->mix);
    if (s->opt.faults & (FAULT_DROP_STATE | FAULT_DROP_CONV) && s->pos % 64 == 63) drop_state(s, l);
    matrix_mul(&l->qkv, bf16, s->u, l->history + (s->pos % g->taps) * g->conv_dim);
    matrix_mul(&l->z, bf16, s->u, s->z);
    matrix_mul(&l->b, bf16, s->u, s->b);
    matrix_mul(&l->a, bf16, s->u, s->a);
    convolve(s, l);
    run_heads(s, l);
    matrix_mul(&l->out, bf16, s->heads_out, s->mix);
    return true;
}

static void mlp(Dense *s, DenseLayer *l)
{
    bool bf16 = s->m->bf16;
    matrix_mul(&l->gate, bf16, s->u, s->gate);
    matrix_mul(&l->up, bf16, s->u, s->up);
    for (uint32_t i = 0; i < s->m->geo.intermediate; i++) s->gate[i] = cast(bf16, cast(bf16, siluf(s->gate[i])) * s->up[i]);
    matrix_mul(&l->down, bf16, s->gate, s->mix);
}

static void add_residual(Dense *s)
{
    for (uint32_t i = 0; i < s->m->geo.hidden; i++) s->x[i] = cast(s->m->bf16, s->x[i] + s->mix[i]);
}

static void probe(const Dense *s, int layer, const char *what)
{
    if (s->opt.probe) s->opt.probe(s->opt.probe_ctx, layer, what, s->x, s->m->geo.hidden);
}

static uint32_t argmax(Dense *s)
{
    uint32_t token = head_argmax(s->head, s->u);
    if (s->opt.full_head) {
        uint32_t full = head_argmax_full(s->head, s->u);
        if (full != token) {
            fprintf(stderr, "%s: pass %llu: the factored head says token %u, the whole vocabulary %u\n", s->m->path,
                    (unsigned long long)s->pos, token, full);
            return UINT32_MAX; /* no kind's token: the machine stops */
        }
    }
    return token;
}

static uint32_t forward(Dense *s, uint32_t token)
{
    const Geometry *g = &s->m->geo;
    head_embed(s->m, token, s->x);
    probe(s, -1, "embed");
    for (uint32_t i = 0; i < g->layers; i++) {
        DenseLayer *l = &s->layer[i];
        rms_norm(s->m->bf16, g->eps, g->hidden, s->x, l->input_norm, s->u);
        if (mixer(s, l)) add_residual(s);
        probe(s, (int)i, "mixer");
        rms_norm(s->m->bf16, g->eps, g->hidden, s->x, l->post_norm, s->u);
        mlp(s, l);
        add_residual(s);
        probe(s, (int)i, "mlp");
    }
    rms_norm(s->m->bf16, g->eps, g->hidden, s->x, s->final_norm, s->u);
    uint32_t next = argmax(s);
    s->pos++;
    return next;
}

static uint32_t dense_run(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    Dense *s = self;
    for (uint32_t n = 0; n < max;) {
        out[n++] = token = forward(s, token);
        const ChipKind *k = model_kind(s->m, token);
        if (!k || k->role != CHIP_TRACE) return n;
    }
    return max;
}

static float *row_of(Dense *s, uint32_t layer, uint32_t head, uint32_t row)
{
    const Geometry *g = &s->m->geo;
    return s->layer[layer].state + ((size_t)head * g->dk + row) * g->dv;
}

static void dense_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    memcpy(lanes, row_of(self, layer, head, row), ((Dense *)self)->m->geo.dv * sizeof *lanes);
}

static void dense_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    memcpy(row_of(self, layer, head, row), lanes, ((Dense *)self)->m->geo.dv * sizeof *lanes);
}

/* The ring's place of the token `back` before the last one fed. */
static float *raw_of(Dense *s, uint32_t layer, uint32_t back)
{
    const Geometry *g = &s->m->geo;
    return s->layer[layer].history + (s->pos + g->taps - 1 - back) % g->taps * g->conv_dim;
}

static void dense_recall(void *self, uint32_t layer, uint32_t back, float *raw)
{
    memcpy(raw, raw_of(self, layer, back), ((Dense *)self)->m->geo.conv_dim * sizeof *raw);
}

static void dense_remember(void *self, uint32_t layer, uint32_t back, const float *raw)
{
    memcpy(raw_of(self, layer, back), raw, ((Dense *)self)->m->geo.conv_dim * sizeof *raw);
}

const Backend dense_backend = {"dense", dense_open, dense_run, dense_get, dense_set, dense_close, dense_recall, dense_remember, NULL};
