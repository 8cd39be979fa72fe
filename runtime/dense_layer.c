/* dense_layer.c: the arithmetic of dense.h.
 *
 * T is the model's dtype; cast() stands wherever the stock layer holds a value in T. The float32 islands are the norms,
 * the l2 norm (after the cast), the recurrence with its state, and the gated norm up to its first cast.
 * Shortcuts, none of which changes a bit of any finite result (but possibly the sign of a zero in the state): zero
 * weights are skipped (matrix.c), rows of the state whose key or query entry is zero are skipped, a decay of exactly 1 is
 * not multiplied, and a no-op attention layer is not run. `full_dense` turns the first two off. */
#include "dense.h"
#include <stdlib.h>

#define L2_EPS 1e-6f /* fixed in the stock layer, not rms_norm_eps */

/* ---- room ---- */
static float *floats(Dense *s, size_t n) { return pool_array(s->pool, n, sizeof(float)); }

static void open_scratch(Dense *s)
{
    const Geometry *g = &s->geo;
    size_t n = s->room, values = (size_t)g->nv * g->dv;
    bool linear = false;
    for (uint32_t i = 0; i < g->layers; i++) linear |= !s->layer[i].full;
    s->x = floats(s, n * g->hidden), s->u = floats(s, n * g->hidden), s->mix = floats(s, n * g->hidden);
    s->gate = floats(s, n * g->intermediate), s->up = floats(s, n * g->intermediate);
    if (!linear) return; /* sizes that no tensor has may be anything */
    s->qkv = floats(s, g->conv_dim), s->raw = floats(s, n * g->conv_dim);
    s->z = floats(s, n * values), s->heads_out = floats(s, n * values);
    s->b = floats(s, n * g->nv), s->a = floats(s, n * g->nv);
    s->q = floats(s, g->dk), s->k = floats(s, g->dk);
    s->q_rows = pool_array(s->pool, g->dk, sizeof *s->q_rows), s->k_rows = pool_array(s->pool, g->dk, sizeof *s->k_rows);
    s->r = floats(s, g->dv), s->d = floats(s, g->dv), s->o = floats(s, g->dv);
}

void dense_begin(Dense *s)
{
    const Geometry *g = &s->geo;
    open_scratch(s);
    for (uint32_t i = 0; i < g->layers; i++) {
        DenseLayer *l = &s->layer[i];
        if (l->full) {
            l->attention = attention_new(g, s->bf16, l->m, l->v, s->room, s->pool);
            continue;
        }
        l->history = floats(s, (size_t)g->taps * g->conv_dim);
        l->state = floats(s, (size_t)g->nv * g->dk * g->dv);
    }
}

void dense_end(Dense *s)
{
    for (uint32_t i = 0; i < s->geo.layers; i++) attention_close(s->layer[i].attention);
}

/* ---- Gated DeltaNet ---- */
/* Depthwise causal convolution over the raw projections, then SiLU, both in T. Tap taps-1 multiplies the current token. */
static void convolve(Dense *s, DenseLayer *l)
{
    const Geometry *g = &s->geo;
    const float *taps = l->v[T_CONV];
    for (uint32_t c = 0; c < g->conv_dim; c++) {
        float sum = 0;
        for (uint32_t j = 0; j < g->taps; j++) {
            uint64_t slot = (s->pos + 1 + j) % g->taps; /* the token taps-1-j back; zeros before the first */
            sum += taps[(size_t)c * g->taps + j] * l->history[slot * g->conv_dim + c];
        }
        sum = cast(s->bf16, sum);
        s->qkv[c] = cast(s->bf16, siluf(sum));
    }
}

/* x / sqrt(sum x^2 + eps), float32. */
static void l2_norm(const Dense *s, const float *x, float *y)
{
    uint32_t n = s->geo.dk;
    float sum = 0, eps = s->opt.faults & FAULT_L2_MEAN ? L2_EPS * (float)n : L2_EPS;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    float r = rsqrtf(sum + eps);
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * r;
}

/* The rows that a key or query reaches; all of them with full_dense. */
static uint32_t reached_rows(const Dense *s, const float *k, uint32_t *rows)
{
    uint32_t n = 0;
    for (uint32_t row = 0; row < s->geo.dk; row++)
        if (k[row] != 0 || s->opt.full_dense) rows[n++] = row;
    return n;
}

/* out[lane] = sum over rows of k[row] * S[row, lane], in order of rows. */
static void read_rows(const Dense *s, const float *state, const float *k, const uint32_t *rows, uint32_t n, float *out)
{
    uint32_t dv = s->geo.dv;
    memset(out, 0, dv * sizeof *out);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t lane = 0; lane < dv; lane++) out[lane] += state[(size_t)rows[i] * dv + lane] * k[rows[i]];
}

static void write_rows(const Dense *s, float *state, const float *d)
{
    uint32_t dv = s->geo.dv;
    for (uint32_t r = 0; r < s->nk; r++) {
        float *cell = state + (size_t)s->k_rows[r] * dv, k = s->k[s->k_rows[r]];
        for (uint32_t i = 0; i < dv; i++) cell[i] = cell[i] + k * d[i];
        for (uint32_t i = 0; s->opt.faults & FAULT_STATE_BF16 && i < dv; i++) cell[i] = bf16_round(cell[i]);
    }
}

static void decay_state(const Dense *s, float *state, float factor)
{
    size_t n = (size_t)s->geo.dk * s->geo.dv;
    if (factor == 1.0f) return;
    for (size_t i = 0; i < n; i++) state[i] *= factor;
}

/* The delta rule for one value head: decay, read at the key, write the correction, then read at the query. */
static void delta_rule(Dense *s, float *state, float decay, float beta, const float *v)
{
    uint32_t dv = s->geo.dv;
    decay_state(s, state, decay);
    read_rows(s, state, s->k, s->k_rows, s->nk, s->r);
    for (uint32_t i = 0; i < dv; i++) s->d[i] = (v[i] - s->r[i]) * beta;
    write_rows(s, state, s->d);
    read_rows(s, state, s->q, s->q_rows, s->nq, s->o);
}

/* RMSNorm over the head in float32, cast, gain in T, then times silu(z) in float32, cast. */
static void gated_norm(const Dense *s, const float *o, const float *w, const float *z, float *y)
{
    uint32_t dv = s->geo.dv;
    bool bf16 = s->bf16;
    float sum = 0;
    for (uint32_t i = 0; i < dv; i++) sum += o[i] * o[i];
    float r = rsqrtf(sum / (float)dv + s->head_eps);
    for (uint32_t i = 0; i < dv; i++) {
        float n = cast(bf16, w[i] * cast(bf16, o[i] * r));
        y[i] = cast(bf16, n * siluf(z[i]));
    }
}

/* A token: its z, b and a, its heads' results. */
static void run_heads(Dense *s, DenseLayer *l, const float *z, const float *b, const float *a, float *out)
{
    const Geometry *g = &s->geo;
    uint32_t share = g->nv / g->nk;
    bool bf16 = s->bf16;
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
        float beta = cast(bf16, sigmoidf(b[j]));
        float decay = expf(-expf(l->v[T_A_LOG][j]) * softplusf(a[j] + l->v[T_DT_BIAS][j]));
        delta_rule(s, l->state + (size_t)j * g->dk * g->dv, decay, beta, s->qkv + 2 * g->nk * g->dk + j * g->dv);
        for (uint32_t i = 0; i < g->dv; i++) s->o[i] = cast(bf16, s->o[i]);
        gated_norm(s, s->o, l->v[T_NORM], z + j * g->dv, out + j * g->dv);
    }
}

static void drop_state(Dense *s, DenseLayer *l)
{
    const Geometry *g = &s->geo;
    if (s->opt.faults & FAULT_DROP_STATE) memset(l->state, 0, (size_t)g->nv * g->dk * g->dv * sizeof(float));
    memset(l->history, 0, (size_t)g->taps * g->conv_dim * sizeof(float));
}

static void delta_token(Dense *s, DenseLayer *l, uint32_t t)
{
    const Geometry *g = &s->geo;
    size_t values = (size_t)g->nv * g->dv;
    if (s->opt.faults & (FAULT_DROP_STATE | FAULT_DROP_CONV) && s->pos % 64 == 63) drop_state(s, l);
    memcpy(l->history + (s->pos % g->taps) * g->conv_dim, s->raw + (size_t)t * g->conv_dim, g->conv_dim * sizeof(float));
    convolve(s, l);
    run_heads(s, l, s->z + t * values, s->b + (size_t)t * g->nv, s->a + (size_t)t * g->nv, s->heads_out + t * values);
}

/* False: nothing comes out. */
static bool mixer(Dense *s, DenseLayer *l, uint32_t n)
{
    const uint64_t pos = s->pos;
    if (l->attention) return attention_step(l->attention, n, s->u, s->mix);
    matrix_mul(&l->m[T_QKV], s->bf16, n, s->u, s->raw);
    matrix_mul(&l->m[T_Z], s->bf16, n, s->u, s->z);
    matrix_mul(&l->m[T_B], s->bf16, n, s->u, s->b);
    matrix_mul(&l->m[T_A], s->bf16, n, s->u, s->a);
    for (uint32_t t = 0; t < n; t++, s->pos++) delta_token(s, l, t);
    s->pos = pos;
    matrix_mul(&l->m[T_OUT], s->bf16, n, s->heads_out, s->mix);
    return true;
}

/* ---- the rest of a layer ---- */
/* A shared expert's result times the sigmoid of its gate's logit, in T. */
static void open_gate(Dense *s, const Matrix *gate, const float *u, float *y)
{
    float logit;
    matrix_mul(gate, s->bf16, 1, u, &logit);
    float open = cast(s->bf16, sigmoidf(logit));
    for (uint32_t i = 0; i < s->geo.hidden; i++) y[i] = cast(s->bf16, open * y[i]);
}

static void mlp(Dense *s, DenseLayer *l, uint32_t n)
{
    const size_t all = (size_t)n * s->geo.intermediate, hidden = s->geo.hidden;
    matrix_mul(&l->m[T_GATE], s->bf16, n, s->u, s->gate);
    matrix_mul(&l->m[T_UP], s->bf16, n, s->u, s->up);
    for (size_t i = 0; i < all; i++) s->gate[i] = cast(s->bf16, cast(s->bf16, siluf(s->gate[i])) * s->up[i]);
    matrix_mul(&l->m[T_DOWN], s->bf16, n, s->gate, s->mix);
    for (uint32_t t = 0; l->open.rows && t < n; t++) open_gate(s, &l->open, s->u + t * hidden, s->mix + t * hidden);
}

static void add_residual(Dense *s, uint32_t n)
{
    for (size_t i = 0; i < (size_t)n * s->geo.hidden; i++) s->x[i] = cast(s->bf16, s->x[i] + s->mix[i]);
}

static void norm(Dense *s, uint32_t n, const float *gain)
{
    for (size_t t = 0; t < n; t++) rms_norm(s->bf16, s->geo.eps, s->geo.hidden, s->x + t * s->geo.hidden, gain, s->u + t * s->geo.hidden);
}

/* For who feeds one token at a time. */
static void probe(const Dense *s, int layer, const char *what)
{
    if (s->opt.probe) s->opt.probe(s->opt.probe_ctx, layer, what, s->x, s->geo.hidden);
}

void dense_pass(Dense *s, uint32_t n)
{
    probe(s, -1, "embed");
    for (uint32_t i = 0; i < s->geo.layers; i++) {
        DenseLayer *l = &s->layer[i];
        norm(s, n, l->v[T_INPUT_NORM]);
        if (mixer(s, l, n)) add_residual(s, n);
        probe(s, (int)i, "mixer");
        norm(s, n, l->v[T_POST_NORM]);
        mlp(s, l, n);
        add_residual(s, n);
        probe(s, (int)i, "mlp");
    }
    norm(s, n, s->final_norm);
    s->pos += n;
}
