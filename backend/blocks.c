/* blocks.c: plan to weights: geometry, MLPs, embedding and output head. Memory blocks are in heads.c.
 *
 * Normalised data are n * 2^-K exactly (pilots fix the RMS), so a projection of an affine form has weight coef * 2^K per channel and its
 * constant over the bias pilot's value p, which reads back as p exactly. */
#include "canary.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

Weights *chip_tensor(Chip *c, const char *name, unsigned ndim, uint64_t a, uint64_t b, uint64_t k, double fill)
{
    for (uint32_t i = c->tensors.n; i-- > 0;)
        if (strcmp(c->tensors.data[i].name, name) == 0) return &c->tensors.data[i];
    vec_push(&c->tensors, ((Weights){.name = name, .ndim = ndim, .shape = {a, b, k}, .fill = fill, .listed = true}));
    return &c->tensors.data[c->tensors.n - 1];
}

static bool holds(const Chip *c, double v)
{
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    return (double)f == v && (!c->bf16 || (u & 0xffff) == 0);
}

void chip_put(Chip *c, Weights *t, uint64_t row, uint64_t col, double v)
{
    if (v == 0) return;
    if (!holds(c, v) && !c->error) c->error = xfmt("a weight of %s, %.17g, is no %s number", t->name, v, c->bf16 ? "bfloat16" : "float32");
    vec_push(&t->nz, ((Nz){(uint32_t)row, (uint32_t)col, (float)v}));
}

/* A constant of more than 8 significant bits goes over two pilots in bf16. */
static void put_bias(Chip *c, Weights *t, uint64_t row, double k)
{
    double v = k / c->pilot_value[c->bias];
    if (holds(c, v) || c->npilots < 2) {
        chip_put(c, t, row, c->pilot_ch[c->bias], v);
        return;
    }
    int e;
    frexp(v, &e);
    double unit = ldexp(1, e - 8), hi = nearbyint(v / unit) * unit, lo = (v - hi) * c->pilot_value[c->bias];
    unsigned other = c->bias ? 0 : 1;
    chip_put(c, t, row, c->pilot_ch[c->bias], hi);
    chip_put(c, t, row, c->pilot_ch[other], lo / c->pilot_value[other]);
}

/* scale * form + more */
static void put_form(Chip *c, Weights *t, uint64_t row, Lin form, double scale, double more)
{
    double k = scale * form.k + more;
    for (uint32_t i = 0; i < form.n; i++) chip_put(c, t, row, form.t[i].node, ldexp(scale * form.t[i].coef, LOG2_SCALE));
    if (k != 0) put_bias(c, t, row, k);
}

void chip_form(Chip *c, Weights *t, uint64_t row, Lin form, double scale) { put_form(c, t, row, form, scale, 0); }

/* ---- geometry ---- */

/* D = 256 m as a sum of squares of 16 times powers of two, largest first; returns how many. In bf16 there are at least two, so that put_bias
 * can divide a constant between them: a lone pilot's square is that of four of half its value. */
static unsigned pilots_for(unsigned hidden, bool bf16, uint32_t *value)
{
    unsigned left = hidden / 256, n = 0;
    while (left && n < MAX_PILOTS) {
        unsigned a = 1;
        while (4 * a * a <= left) a *= 2;
        value[n++] = 16 * a;
        left -= a * a;
    }
    if (bf16 && n == 1)
        for (value[0] /= 2; n < 4; n++) value[n] = value[0];
    return left || hidden % 256 ? 0 : n;
}

static void attention_geometry(Chip *c);

static void mark(bool *read, Lin l)
{
    for (uint32_t i = 0; i < l.n; i++) read[l.t[i].node] = true;
}

/* Channels beside the machine's own and the pilots that a chip before a base model needs: a copy of all that the output head reads, and marks. */
static unsigned graft_channels(const Chip *c)
{
    const Protocol *p = c->plan->p;
    bool *read = xalloc(c->plan->nchannels * sizeof *read + 1);
    unsigned n = GRAFT_MARKS + MAX_PILOTS;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        if (!x->score) continue;
        mark(read, c->plan->kind_out[k]);
        for (unsigned i = 0; i < x->width; i++) mark(read, c->plan->word_out[x->word][i]);
    }
    for (uint32_t i = 0; i < c->plan->nchannels; i++) n += read[i];
    return n;
}

/* The smallest hidden size with pilots and room. */
static unsigned choose_hidden(const Chip *c)
{
    uint32_t value[MAX_PILOTS];
    unsigned base = c->target->base_hidden, more = c->plan->nchannels + base + (base ? graft_channels(c) : 0);
    for (unsigned hidden = 256;; hidden += 256) {
        unsigned pilots = pilots_for(hidden, c->bf16, value);
        if (pilots && pilots + more <= hidden) return hidden;
    }
}

static void choose_geometry(Chip *c)
{
    const Target *t = c->target;
    const Plan *p = c->plan;
    c->hidden = t->hidden ? t->hidden : choose_hidden(c);
    if (t->base_hidden && c->hidden < choose_hidden(c)) c->error = xfmt("the machine beside the base model needs a hidden size of %u, not %u", choose_hidden(c), c->hidden);
    c->npilots = pilots_for(c->hidden, c->bf16, c->pilot_value);
    if (!c->npilots && t->base_hidden && !c->error) c->error = xfmt("hidden size %u is no sum of a few squares of powers of two: try another multiple of 256", c->hidden);
    if (!c->npilots && !c->error) die("hidden size %u has no pilots", c->hidden);
    if (p->nchannels + c->npilots > c->hidden)
        c->error = xfmt("the machine needs %u channels, the target %s has %u", p->nchannels, t->name, c->hidden - c->npilots);
    for (unsigned i = 0; i < c->npilots; i++) c->pilot_ch[i] = c->hidden - c->npilots + i;
    uint32_t most = 1;
    for (unsigned l = 0; l < p->layers; l++) {
        c->units += p->mlp[l].units.n;
        most = p->mlp[l].units.n > most ? p->mlp[l].units.n : most;
    }
    c->mlp = t->native ? (most + 63) / 64 * 64 : t->mlp;
    if (most > c->mlp) c->error = xfmt("a layer needs %u MLP units, the target %s has %u", most, t->name, c->mlp);
    c->dk = t->dk, c->dv = t->dv;
    c->layers = p->layers + 1;
    for (uint32_t k = 0; k < p->p->kinds.n; k++)
        if (p->p->kinds.data[k].width > c->max_width) c->max_width = p->p->kinds.data[k].width;
    heads_size(c);
    if (p->canary_kind) canary_size(c);
    attention_geometry(c);
}

/* ---- MLP ---- */

static const char *layer_name(unsigned l, const char *rest) { return xfmt("model.layers.%u.%s", l, rest); }

static bool is_and(Lin g)
{
    bool ones = g.n > 0;
    for (uint32_t i = 0; i < g.n; i++) ones &= g.t[i].coef == 1 || g.t[i].coef == -1;
    return ones;
}

static void emit_mlp(Chip *c, unsigned l)
{
    const Mlp *m = l < c->plan->layers ? &c->plan->mlp[l] : NULL;
    Weights *norm = chip_tensor(c, layer_name(l, "post_attention_layernorm.weight"), 1, c->hidden, 0, 0, 0);
    (void)norm;
    chip_tensor(c, layer_name(l, "mlp.gate_proj.weight"), 2, c->mlp, c->hidden, 0, 0);
    chip_tensor(c, layer_name(l, "mlp.up_proj.weight"), 2, c->mlp, c->hidden, 0, 0);
    Weights *down = chip_tensor(c, layer_name(l, "mlp.down_proj.weight"), 2, c->hidden, c->mlp, 0, 0);
    Weights *up = down - 1, *gate = down - 2;
    for (uint32_t u = 0; m && u < m->units.n; u++) {
        const Unit *x = &m->units.data[u];
        Lin g = x->gate;
        if (x->gmax == 1 && is_and(g)) g = lin_add(lin_const(-1), g, 2); /* 2L - 1: an L that is wrong by a third still decides */
        chip_form(c, gate, u, g, GATE);
        chip_form(c, up, u, x->up, 1);
        for (uint32_t i = 0; i < x->out.n; i++) chip_put(c, down, x->out.data[i].ch, u, x->out.data[i].coef / GATE);
    }
    c->unit_spans[l] = xalloc((m ? m->units.n : 0) * sizeof(Span) + 1);
    for (uint32_t u = 0; m && u < m->units.n; u++) c->unit_spans[l][u] = m->units.data[u].span;
}

/* ---- vocabulary ---- */

static void emit_embedding(Chip *c)
{
    const Protocol *p = c->plan->p;
    uint32_t nk = p->kinds.n, w = c->max_width;
    chip_tensor(c, "embed.kind", 2, nk, c->hidden, 0, 0)->listed = false;
    chip_tensor(c, "embed.bit", 2, (uint64_t)nk * w, c->hidden, 0, 0)->listed = false;
    Weights *bit = chip_tensor(c, "embed.bit", 0, 0, 0, 0, 0), *kind = bit - 1;
    for (uint32_t k = 0; k < nk; k++) {
        for (unsigned i = 0; i < c->npilots; i++) chip_put(c, kind, k, c->pilot_ch[i], ldexp(c->pilot_value[i], LOG2_SCALE));
        for (uint32_t e = 0; e < c->plan->start.n; e++) chip_put(c, kind, k, c->plan->start.data[e].ch, c->plan->start.data[e].value);
        for (uint32_t e = 0; e < c->plan->embed.n; e++) {
            int b = p->tok.data[c->plan->embed.data[e].tok].by_kind.data[k];
            if (b == TOK_ONE) chip_put(c, kind, k, c->plan->embed.data[e].ch, 1);
            else if (b >= 0) chip_put(c, bit, (uint64_t)k * w + (unsigned)b, c->plan->embed.data[e].ch, 1);
        }
    }
}

/* From a logit to the next: payloads must differ by more than the dtype's rounding there, and kinds as well. */
static double score_step(const Chip *c, double score)
{
    double spacing = ldexp(1, ilogb(score) - (c->bf16 ? 7 : 23));
    return spacing > SCORE_STEP ? spacing : SCORE_STEP;
}

/* The logit of a kind of this rank that is on, with the payload that the machine says; one that is off has at most 0. */
static double score_of(const Chip *c, unsigned rank)
{
    double score = LEAST_SCORE;
    while (rank-- > 1) score += score_step(c, score);
    return score;
}

static void emit_head(Chip *c)
{
    const Protocol *p = c->plan->p;
    uint32_t nk = p->kinds.n, w = c->max_width;
    chip_tensor(c, "head.kind", 2, nk, c->hidden, 0, 0)->listed = false;
    chip_tensor(c, "head.bit", 2, (uint64_t)nk * w, c->hidden, 0, 0)->listed = false;
    Weights *bit = chip_tensor(c, "head.bit", 0, 0, 0, 0, 0), *kind = bit - 1;
    for (uint32_t k = 0; k < nk; k++) {
        const Kind *x = &p->kinds.data[k];
        if (!x->score) continue;
        double score = score_of(c, x->score), each = score_step(c, score) / 2;
        put_form(c, kind, k, c->plan->kind_out[k], score, -each * x->width);
        for (unsigned i = 0; i < x->width; i++) {
            Lin o = lin_add(lin_const(-1), c->plan->word_out[x->word][i], 2);
            chip_form(c, bit, (uint64_t)k * w + i, o, each);
        }
    }
    chip_tensor(c, "model.norm.weight", 1, c->hidden, 0, 0, 0);
}

/* ---- attention: read-only memories, and the final layer that does nothing (o_proj is zero) but that stock code wants ---- */

enum { CODE = 16, CODE_NORM = 15 }; /* address codes before the norm; q_norm and k_norm weights: gain 1 + 15 */

static Weights *attention_tensors(Chip *c, unsigned l)
{
    uint64_t q = (uint64_t)c->attn_heads * c->head_dim, kv = (uint64_t)c->attn_kv * c->head_dim;
    chip_tensor(c, layer_name(l, "input_layernorm.weight"), 1, c->hidden, 0, 0, 0);
    chip_tensor(c, layer_name(l, "self_attn.q_norm.weight"), 1, c->head_dim, 0, 0, CODE_NORM);
    chip_tensor(c, layer_name(l, "self_attn.k_norm.weight"), 1, c->head_dim, 0, 0, CODE_NORM);
    chip_tensor(c, layer_name(l, "self_attn.q_proj.weight"), 2, 2 * q, c->hidden, 0, 0);
    chip_tensor(c, layer_name(l, "self_attn.k_proj.weight"), 2, kv, c->hidden, 0, 0);
    chip_tensor(c, layer_name(l, "self_attn.v_proj.weight"), 2, kv, c->hidden, 0, 0);
    return chip_tensor(c, layer_name(l, "self_attn.o_proj.weight"), 2, c->hidden, q, 0, 0);
}

/* Row numbers are codes of +-CODE in dimensions that RoPE leaves alone; a token that loads a row has the row's code as its key, every
 * other token the key 0. All codes have one norm, so with n bits and head dimension h a match scores g^2 sqrt(h) (g = 1 + CODE_NORM) and
 * one wrong bit costs 2 g^2 sqrt(h) / n: both at least 104, so that the softmax is exactly one-hot in float32 (exp(-104) = 0). */
static void emit_rom(Chip *c, Weights *out, const PlanPort *p, unsigned head)
{
    const Port *q = p->port;
    Weights *v = out - 1, *k = out - 2, *query = out - 3;
    unsigned h = c->head_dim, rot = h / 4, kv = head, per = c->attn_heads / c->attn_kv;
    uint64_t qh = (uint64_t)head * per;
    double gap = 2.0 * (1 + CODE_NORM) * (1 + CODE_NORM) * sqrt(h) / (q->nraddr ? q->nraddr : 1);
    if ((q->nraddr + rot > h || q->width > h || gap < 104) && !c->error) c->error = xfmt("%s is too large for an attention head of %u", q->name, h);
    for (unsigned i = 0; i < q->nraddr; i++) {
        chip_form(c, query, qh * 2 * h + rot + i, lin_add(lin_const(-1), p->raddr[i], 2), CODE);
        Lin key = lin_add(lin_const(0), p->load_on, -1);
        if (i < q->nload_addr) key = lin_add(key, p->load_addr[i], 2);
        chip_form(c, k, (uint64_t)kv * h + rot + i, key, CODE);
    }
    for (unsigned i = 0; i < q->width; i++) {
        if (p->out[i] == UINT32_MAX) continue;
        chip_form(c, v, (uint64_t)kv * h + i, p->load_data[i], 1);
        Lin open = p->rgate.n ? lin_add(lin_const(-1), p->rgate, 2) : lin_const(1);
        chip_form(c, query, qh * 2 * h + h + i, open, HOT);
        chip_put(c, out, p->out[i], qh * h + i, 1);
    }
}

static void emit_attention(Chip *c, unsigned l)
{
    Weights *out = attention_tensors(c, l);
    unsigned head = 0;
    for (uint32_t i = 0; i < c->plan->ports.n; i++) {
        const PlanPort *p = &c->plan->ports.data[i];
        if (p->port->kind == PORT_ROM && p->home == (int)l) emit_rom(c, out, p, head++);
    }
}

/* Native: a head for each ROM of the fullest layer, of the table's size or more for its codes and values. */
static void attention_geometry(Chip *c)
{
    const Target *t = c->target;
    unsigned most = 1, need = t->head_dim;
    for (unsigned l = 0; l < c->plan->layers; l++) {
        unsigned n = 0;
        for (uint32_t i = 0; i < c->plan->ports.n; i++) {
            const Port *q = c->plan->ports.data[i].port;
            if (q->kind != PORT_ROM || q->home != (int)l) continue;
            n++;
            while (need < q->width || need - need / 4 < q->nraddr) need *= 2;
        }
        most = n > most ? n : most;
    }
    c->attn_heads = t->native ? most : t->attn_heads;
    c->attn_kv = t->native ? most : t->attn_kv_heads;
    c->head_dim = t->native ? need : t->head_dim;
}

bool chip_is_attention(const Chip *c, unsigned l)
{
    return l + 1 == c->layers || c->plan->p->m->attention[l];
}

static int by_place(const void *a, const void *b)
{
    const Nz *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->col < y->col ? -1 : x->col > y->col;
}

/* Sorts, adds up equal places. */
static void finish_tensor(Chip *c, Weights *t)
{
    if (t->nz.n) qsort(t->nz.data, t->nz.n, sizeof(Nz), by_place);
    uint32_t k = 0;
    for (uint32_t i = 0; i < t->nz.n; i++) {
        if (k && by_place(&t->nz.data[k - 1], &t->nz.data[i]) == 0) {
            t->nz.data[k - 1].v += t->nz.data[i].v;
            if (!holds(c, t->nz.data[k - 1].v) && !c->error) c->error = xfmt("a weight of %s is not exact", t->name);
        } else t->nz.data[k++] = t->nz.data[i];
    }
    t->nz.n = k;
    if (t->listed) c->nonzeros += k;
}

Chip *blocks_make(const Plan *p, const char *netlist)
{
    Chip *c = xalloc(sizeof *c);
    *c = (Chip){.plan = p, .target = p->opt->target, .bf16 = p->opt->bf16, .netlist = netlist};
    choose_geometry(c);
    if (c->error) return c;
    c->unit_spans = xalloc(c->layers * sizeof *c->unit_spans);
    emit_embedding(c);
    for (unsigned l = 0; l < c->layers; l++) {
        if (chip_is_attention(c, l)) emit_attention(c, l);
        else heads_emit(c, l);
        emit_mlp(c, l);
    }
    emit_head(c);
    if (p->canary_kind) canary_emit(c);
    for (uint32_t i = 0; i < c->tensors.n; i++) finish_tensor(c, &c->tensors.data[i]);
    return c;
}
