/* canary.c: the conformance kit's heads, all in layer 0, each on a key head of its own. A reading is about 1 when the arithmetic is that of the
 * stock layer and less than 1/2 when it is not; the logit of the fault's token is a multiple of 1 - 2 reading.
 *
 *   hold    the token `arm`, fed once before all others, writes a row: pilots P, cells H and H (1 + e), e = 2^-12. beta is 0 ever after.
 *           The first cell reads 1, or 0 when the state was lost. The difference of both, over e, reads 1 within 2^-10, or 0 when the
 *           state is kept in 16 bits: H (1 + e) has 13 significant bits, bfloat16 keeps 8, float16 11.
 *   conv    the cell is what the projection said one token before: H, or 0 when the convolution's history was lost.
 *   eps     the query is one small entry d = silu(2^-9), about 2^-10: l2norm makes d / sqrt(d^2 + 1e-6) = 0.70 of it, and only
 *           d / sqrt(d^2 + dk 1e-6) when the epsilon is added to the mean (0.12 with dk = 64, 0.06 with 256). The cells are so small (about 0.1)
 *           that the gated norm's own epsilon is as large as their mean square: its factor does not undo that. What is read is
 *           scaled to be 1 when both epsilons are right.
 *   weight  no head: every token's embedding holds 1 + e, and lm_head subtracts 1: 0 when weights or activations are kept in 16 bits.
 *
 * In float32 the readings' errors are below 2^-9 (hold: 3 roundings of 2^-24, times 2^12; eps: those of exp, sqrt and division, each below 2^-20), so
 * that the logits' signs have a margin of more than 0.49 of their size. The kit's machine itself is proved without them: they add to no channel of it,
 * and to the mean square of the stream less than 2^-40 of it. */
#include "canary.h"
#include <math.h>
#include <stdlib.h>

enum {
    CH_ARM,       /* 1 in the token that arms */
    CH_STATE, CH_PRECISION, CH_CONV, CH_EPS, CH_WEIGHT,
    CHANNELS,
    KEY_HEADS = 3, /* hold, conv, eps */
    LOG2_E = 12,
    LOG2_LOGIT = 14 /* above every logit of a machine: score_of in blocks.c */
};
#define EPS_QUERY 0x1p-9 /* before SiLU */
#define EPS_CELL 0.1875  /* before SiLU */

/* In order of the channels from CH_STATE on; `weight` decides which of several is said. */
const Canary canaries[] = {
    {"lost.state", "the recurrent state was lost between two tokens", "a forward pass of several tokens must start from the cached state: feed one token at a time, or take a newer version"},
    {"rounded.state", "the recurrent state is not kept in float32", "keep it in float32 between tokens, whatever the model's dtype"},
    {"lost.conv", "the convolution's history was lost between two tokens", "a forward pass of several tokens must continue the cached convolution window, not pad with zeros"},
    {"wrong.epsilon", "an epsilon is not where it belongs", "l2norm of queries and keys divides by sqrt(sum of squares + 1e-6), not of the mean; the gated norm takes rms_norm_eps on the mean"},
    {"rounded.weights", "weights or activations are not in float32", "load the checkpoint with dtype float32 and switch reduced-precision matrix products off (TF32)"},
};
const unsigned ncanaries = sizeof canaries / sizeof *canaries;
static const int weight[] = {8, 1, 4, 1, 2};

static double silu(double x) { return x / (1 + exp(-x)); }

/* ---- plan ---- */
static void add_kind(Protocol *p, const char *name, const char *message, Role role)
{
    vec_push(&p->kinds, ((Kind){.name = name, .message = message, .role = role, .base = (uint32_t)p->vocab++, .last = true, .field = -1, .form = -1}));
    for (uint32_t i = 0; i < p->tok.n; i++) vec_push(&p->tok.data[i].by_kind, TOK_ZERO);
}

uint32_t canary_plan(Plan *p)
{
    uint32_t old = p->p->kinds.n;
    add_kind(p->p, "arm", NULL, ROLE_LOAD);
    for (unsigned i = 0; i < ncanaries; i++) add_kind(p->p, canaries[i].name, canaries[i].message, ROLE_FAULT);
    Lin *out = xalloc(p->p->kinds.n * sizeof *out);
    for (uint32_t k = 0; k < old; k++) out[k] = p->kind_out[k];
    p->kind_out = out;
    p->canary_kind = old;
    p->canary_ch = p->nchannels;
    p->nchannels += CHANNELS;
    return old;
}

/* ---- heads ---- */
void canary_size(Chip *c)
{
    uint32_t r = c->nv / c->nk;
    c->canary_key = c->nk;
    c->nk += KEY_HEADS;
    c->nv = c->nk * r;
}

typedef struct {
    Chip *c;
    Weights *qkv, *conv, *z, *b, *out;
    uint32_t key, head;
} Place;

static Weights *layer0(Chip *c, const char *name) { return chip_tensor(c, xfmt("model.layers.0.%s.weight", name), 0, 0, 0, 0, 0); }

static Place place(Chip *c, unsigned i)
{
    uint32_t key = c->canary_key + i;
    return (Place){c, layer0(c, "linear_attn.in_proj_qkv"), layer0(c, "linear_attn.conv1d"), layer0(c, "linear_attn.in_proj_z"),
                   layer0(c, "linear_attn.in_proj_b"), layer0(c, "linear_attn.out_proj"), key, key * (c->nv / c->nk)};
}

/* A constant row of the convolved projection, as it was `tap` tokens ago. */
static void constant(const Place *p, uint32_t row, double value, int tap)
{
    chip_form(p->c, p->qkv, row, lin_const(1), value);
    chip_put(p->c, p->conv, row, (uint64_t)(3 - tap), 1);
}

static void keys(const Place *p, double query)
{
    constant(p, p->key * p->c->dk, query, 0);
    constant(p, (p->c->nk + p->key) * p->c->dk, HOT, 0);
}

static uint32_t value_row(const Place *p, uint32_t lane) { return 2 * p->c->nk * p->c->dk + p->head * p->c->dv + lane; }

static void pilots(const Place *p)
{
    for (unsigned i = 0; i < pilot_lanes(p->c->dv); i++) constant(p, value_row(p, p->c->dv - 1 - i), ldexp(1, LOG2_PILOT), 0);
}

/* channel += w * what the lane reads; gate: z before SiLU. */
static void reading(const Place *p, uint32_t lane, double gate, uint32_t channel, double w)
{
    chip_form(p->c, p->z, (uint64_t)p->head * p->c->dv + lane, lin_const(1), gate);
    chip_put(p->c, p->out, p->c->plan->canary_ch + channel, (uint64_t)p->head * p->c->dv + lane, (float)w);
}

static void hold(Chip *c)
{
    Place p = place(c, 0);
    keys(&p, HOT);
    chip_form(c, p.b, p.head, lin_add(lin_const(-1), lin_node(c->plan->canary_ch + CH_ARM, 1), 2), HOT);
    pilots(&p);
    for (uint32_t lane = 0; lane < 3; lane++) constant(&p, value_row(&p, lane), lane == 2 ? HOT * (1 + ldexp(1, -LOG2_E)) : HOT, 0);
    reading(&p, 0, read_gate(c->dv), CH_STATE, 1);
    reading(&p, 1, read_gate(c->dv), CH_PRECISION, -ldexp(1, LOG2_E));
    reading(&p, 2, read_gate(c->dv), CH_PRECISION, ldexp(1, LOG2_E));
}

static void conv(Chip *c)
{
    Place p = place(c, 1);
    keys(&p, HOT);
    chip_form(c, p.b, p.head, lin_const(1), HOT);
    pilots(&p);
    constant(&p, value_row(&p, 0), HOT, 1);
    reading(&p, 0, read_gate(c->dv), CH_CONV, 1);
}

static void eps(Chip *c)
{
    Place p = place(c, 2);
    double d = silu(EPS_QUERY), o = d / sqrt(d * d + 1e-6) / sqrt(c->dk) * silu(EPS_CELL);
    double n = o / sqrt(o * o / c->dv + c->target->eps) * NORM_GAIN * silu(1);
    keys(&p, EPS_QUERY);
    chip_form(c, p.b, p.head, lin_const(1), HOT);
    constant(&p, value_row(&p, 0), EPS_CELL, 0);
    reading(&p, 0, 1, CH_EPS, 1 / n);
}

/* ---- vocabulary ---- */
static void vocabulary(Chip *c)
{
    Weights *embed = chip_tensor(c, "embed.kind", 0, 0, 0, 0, 0), *head = chip_tensor(c, "head.kind", 0, 0, 0, 0, 0);
    uint32_t first = c->plan->canary_kind, ch = c->plan->canary_ch;
    for (uint32_t k = 0; k < c->plan->p->kinds.n; k++) chip_put(c, embed, k, ch + CH_WEIGHT, 1 + ldexp(1, -LOG2_E));
    chip_put(c, embed, first, ch + CH_ARM, 1);
    for (unsigned i = 0; i < ncanaries; i++) {
        Lin l = lin_add(lin_const(1), lin_node(ch + CH_STATE + i, 1), -2);
        if (CH_STATE + i == CH_WEIGHT) l = lin_add(lin_const(1 + (2 << LOG2_E)), lin_node(ch + CH_WEIGHT, 1), -(2 << LOG2_E));
        chip_form(c, head, first + 1 + i, l, ldexp(weight[i], LOG2_LOGIT));
    }
}

void canary_emit(Chip *c)
{
    hold(c);
    conv(c);
    eps(c);
    vocabulary(c);
}
