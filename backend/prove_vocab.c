/* prove_vocab.c: the two ends of a pass: the embedding, whose values are functions of (kind, payload), and the argmax over the output head,
 * whose logits are A_k + sum over i of +-B_ki. */
#include "prove_priv.h"
#include <stdlib.h>

/* ---- embedding ---- */

/* [rows, hidden] as lists per column, so that a channel is looked at as a whole. */
typedef struct {
    uint32_t *start; /* [hidden + 1] */
    uint32_t *row;
    double *value;
} Columns;

static Columns columns(Prover *p, const Tensor *t)
{
    Columns c = {pool_array(p->pool, p->g->hidden + 2, sizeof *c.start), pool_array(p->pool, t->n + 1, sizeof *c.row),
                 pool_array(p->pool, t->n + 1, sizeof *c.value)};
    for (uint32_t i = 0; i < t->n; i++) c.start[t->col[i] + 2]++;
    for (uint32_t i = 1; i < p->g->hidden + 2; i++) c.start[i] += c.start[i - 1];
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t at = c.start[t->col[i] + 1]++;
        c.row[at] = (uint32_t)t->row[i], c.value[at] = t->value[i];
    }
    return c;
}

/* Tokens of the loader, and the others. */
static void token_worlds(Prover *p)
{
    const Model *m = p->m;
    Var *load = pool_array(p->pool, m->nkinds + 1, sizeof *load), *run = pool_array(p->pool, m->nkinds + 1, sizeof *run);
    uint32_t nload = 0, nrun = 0;
    for (uint32_t k = 0; k < m->nkinds; k++)
        if (m->kind[k].role == CHIP_LOAD) load[nload++] = p->kind_var[k];
        else run[nrun++] = p->kind_var[k];
    if (nload && nrun) solver_worlds(p->s, load, nload, run, nrun);
}

static void token_vars(Prover *p)
{
    const Model *m = p->m;
    VarTerm *one = pool_array(p->pool, m->nkinds + 1, sizeof *one);
    p->kind_var = pool_array(p->pool, m->nkinds + 1, sizeof *p->kind_var);
    p->payload_var = pool_array(p->pool, m->max_width + 1, sizeof *p->payload_var);
    for (uint32_t k = 0; k < m->nkinds; k++) one[k] = (VarTerm){p->kind_var[k] = solver_free_var(p->s, 0, 1), 1};
    for (uint32_t i = 0; i < m->max_width; i++) p->payload_var[i] = solver_free_var(p->s, 0, 1);
    solver_one_hot(p->s, p->kind_var, m->nkinds);
    p->one_kind = solver_lin(p->s, one, m->nkinds);
    solver_limit(p->s, p->one_kind, 1, 1);
    token_worlds(p);
    for (uint32_t k = 0; m->nkinds > 1 && k < m->nkinds; k++) solver_attach(p->s, p->kind_var[k], p->one_kind);
}

/* A value that every token has. */
static bool same_in_all(const Prover *p, uint32_t ch, const Columns *kind, const Columns *bit)
{
    uint32_t a = kind->start[ch], b = kind->start[ch + 1];
    bool same = bit->start[ch] == bit->start[ch + 1] && b - a == p->m->nkinds;
    for (uint32_t i = a; same && i < b; i++) same = kind->value[i] == kind->value[a] && kind->row[i] == i - a;
    return same;
}

/* ... and too large to be data: a pilot. */
static bool find_pilot(Prover *p, uint32_t ch, const Columns *kind, const Columns *bit)
{
    double v = kind->start[ch] < kind->start[ch + 1] ? kind->value[kind->start[ch]] : 0;
    if (fabs(v) < 0x1p12 || !same_in_all(p, ch, kind, bit)) return false;
    p->pilot[ch] = true;
    p->pilot_value[ch] = v;
    return true;
}

static bool embed_channel(Prover *p, Sum *x, uint32_t ch, const Columns *kind, const Columns *bit)
{
    uint32_t w = p->m->max_width;
    sum_begin(x, p, ch);
    for (uint32_t i = kind->start[ch]; i < kind->start[ch + 1]; i++) sum_linear(p, x, kind->value[i], p->kind_var[kind->row[i]], 0);
    for (uint32_t i = bit->start[ch]; i < bit->start[ch + 1]; i++) {
        uint32_t k = bit->row[i] / w, b = bit->row[i] % w;
        if (b >= p->m->kind[k].width) return refuse(p, "embedding: kind %s has a bit %u", p->m->kind[k].name, b);
        Gate *both = pool_alloc(p->pool, sizeof *both + 2 * sizeof *both->t);
        *both = (Gate){.a = 1, .k = -1, .hi = 1, .n = 2, .t = (VarTerm *)(both + 1)};
        both->t[0] = (VarTerm){p->kind_var[k], 1}, both->t[1] = (VarTerm){p->payload_var[b], 1};
        sum_gate(x, bit->value[i], both, true, NO_VAR, 1);
    }
    p->chan[ch] = NO_VAR, p->constant[ch] = 0;
    if (same_in_all(p, ch, kind, bit)) {
        double v = kind->value[kind->start[ch]];
        if (v != nearbyint(v)) return refuse(p, "embedding: channel %u is %g", ch, v);
        p->constant[ch] = (int32_t)v;
        return true;
    }
    if (kind->start[ch] == kind->start[ch + 1] && bit->start[ch] == bit->start[ch + 1]) return true;
    if (!sum_end(p, x, "embedding", &p->chan[ch])) return false;
    const VarInfo *v = solver_var(p->s, p->chan[ch]);
    double most = fmax(fabs((double)v->lo), fabs((double)v->hi));
    return most == 0 || margin(p, M_ROUND, ((p->bf16 ? 0x1p8 : 0x1p24) + 1) / most, "embedding", ch, 0);
}

bool prove_embedding(Prover *p)
{
    Columns kind = columns(p, &p->m->embed_kind), bit = columns(p, &p->m->embed_bit);
    Sum sum = {0};
    bool ok = true;
    double square = 0;
    token_vars(p);
    for (uint32_t ch = 0; ok && ch < p->g->hidden; ch++) {
        p->chan[ch] = NO_VAR;
        if (find_pilot(p, ch, &kind, &bit)) square += p->pilot_value[ch] * p->pilot_value[ch];
        else ok = embed_channel(p, &sum, ch, &kind, &bit);
    }
    sum_free(&sum);
    if (!ok) return false;
    double mean = square / p->g->hidden;
    p->scale = sqrt(mean);
    if (square == 0 || low_bit(p->scale) != p->scale || p->scale * p->scale * p->g->hidden != square)
        return refuse(p, "embedding: the mean square of the pilots is %g, no power of 4", mean);
    return true;
}

/* ---- argmax ---- */
typedef struct {
    Var s;              /* A = a s + k */
    double a, k;
    double lo, hi;      /* of A: off, on */
    double bits;        /* sum of |B_ki| */
    double least;       /* smallest of them */
    bool fixed;         /* A is constant */
} Score;

/* A bit's two values when a constant one did not look like one at first. */
static bool bit_value(Prover *p, const Form *f, double *v0, double *v1)
{
    if (!form_tighten(p, f)) return false;
    form_range(p, f, v0, v1);
    return fabs(*v0) == fabs(*v1) && *v0 != 0;
}

/* One kind's row: products exact, every |B| the same in all passes. */
static bool score_of(Prover *p, uint32_t k, const Form *kind, const Form *bit, Score *x)
{
    const ChipKind *c = &p->m->kind[k];
    double sum = kind->kabs, unit = kind->kunit;
    if (!form_var(p, kind, &x->s, &x->a, &x->k)) return false;
    if (x->s != NO_VAR && solver_var(p->s, x->s)->hi - solver_var(p->s, x->s)->lo > 1 && form_tighten(p, kind) && !form_var(p, kind, &x->s, &x->a, &x->k)) return false;
    form_range(p, kind, &x->lo, &x->hi);
    x->fixed = x->s == NO_VAR || solver_var(p->s, x->s)->lo == solver_var(p->s, x->s)->hi;
    if (x->fixed && x->hi <= 0 && sum == 0) return true; /* never said: its logits are 0 */
    if (!x->fixed && solver_var(p->s, x->s)->hi - solver_var(p->s, x->s)->lo != 1)
        return not_shown(p, "head: the score of kind %s has more than two values", c->name);
    sum += fmax(fabs(x->lo), fabs(x->hi)), unit = x->s == NO_VAR ? unit : fmin(unit ? unit : INFINITY, low_bit(x->a));
    x->least = INFINITY;
    for (uint32_t i = 0; i < c->width; i++) {
        Var s;
        double a, b;
        if (!form_var(p, &bit[i], &s, &a, &b)) return false;
        double v0 = b, v1 = b; /* a constant: always the same payload bit */
        if (s != NO_VAR) {
            const VarInfo *v = solver_var(p->s, s);
            if (v->hi - v->lo > 1 && form_tighten(p, &bit[i])) v = solver_var(p->s, s);
            v0 = a * v->lo + b, v1 = a * v->hi + b;
            if (v->hi - v->lo > 1) return not_shown(p, "head: bit %u of kind %s has more than two values", i, c->name);
        }
        if ((fabs(v0) != fabs(v1) || v0 == 0) && !bit_value(p, &bit[i], &v0, &v1)) return not_shown(p, "head: bit %u of kind %s is %g or %g, not +-1", i, c->name, v0, v1);
        x->bits += fabs(v0);
        x->least = fmin(x->least, fabs(v0));
        sum += fabs(a) + bit[i].kabs;
        unit = fmin(unit ? unit : INFINITY, fmin(a ? low_bit(a) : INFINITY, bit[i].kunit ? bit[i].kunit : INFINITY));
    }
    return margin(p, M_SUM, sum == 0 ? INFINITY : 0x1p24 * unit / sum, "lm_head", k, 0);
}

/* A row of lm_head is kind row plus or minus bit rows: numbers of the dtype for every payload. */
static bool rows_hold(Prover *p)
{
    const Tensor *part[2] = {&p->m->head_kind, &p->m->head_bit};
    double *sum = pool_array(p->pool, p->g->hidden, sizeof *sum), *unit = pool_array(p->pool, p->g->hidden, sizeof *unit);
    uint32_t at[2] = {0, 0};
    for (uint32_t k = 0; k < p->m->nkinds; k++) {
        memset(sum, 0, p->g->hidden * sizeof *sum);
        for (int t = 0; t < 2; t++)
            for (uint32_t to = (k + 1) * (t ? p->m->max_width : 1); at[t] < part[t]->n && (uint32_t)part[t]->row[at[t]] < to; at[t]++) {
                int32_t c = part[t]->col[at[t]];
                double v = part[t]->value[at[t]], u = low_bit(v);
                unit[c] = sum[c] == 0 || u < unit[c] ? u : unit[c];
                sum[c] += fabs(v);
                if (v != 0 && sum[c] > (p->bf16 ? 0x1p8 : 0x1p24) * unit[c])
                    return refuse(p, "lm_head: column %d of kind %s is no number of the dtype for every payload", c, p->m->kind[k].name);
            }
    }
    return true;
}

/* The gap between two logits after rounding to the dtype; the first is the right one. */
static double gap(const Prover *p, double right, double wrong) { return round_to(p->bf16, right) - round_to(p->bf16, wrong); }

static bool lose(Prover *p, uint32_t k, double g, double at, const char *to, double *least)
{
    double unit = ldexp(1, ilogb(fmax(fabs(at), 1)) - (p->bf16 ? 7 : 23)); /* spacing of the dtype there */
    *least = fmin(*least, g);
    if (g > 0) return margin(p, M_LOGIT, 1 + g / unit, p->m->kind[k].name, k, 0);
    return not_shown(p, "head: kind %s ties with %s (gap %g)", p->m->kind[k].name, to, g);
}

/* Kinds that are on together must differ in score. */
static bool exclusive(Prover *p, const Score *x, uint32_t a, uint32_t b)
{
    Bound both[2];
    uint32_t n = 0;
    if (!x[a].fixed) both[n++] = (Bound){x[a].s, solver_var(p->s, x[a].s)->hi, INT32_MAX};
    if (!x[b].fixed) both[n++] = (Bound){x[b].s, solver_var(p->s, x[b].s)->hi, INT32_MAX};
    if (!x[a].fixed && x[a].a < 0) both[0].lo = INT32_MIN, both[0].hi = solver_var(p->s, x[a].s)->lo;
    if (!x[b].fixed && x[b].a < 0) both[n - 1].lo = INT32_MIN, both[n - 1].hi = solver_var(p->s, x[b].s)->lo;
    if (n == 2 && x[a].a > 0 && x[b].a > 0 && both[0].lo == 1 && both[1].lo == 1 && solver_exclusive(p->s, both[0].v, both[1].v)) return true;
    return n && solver_impossible(p->s, both, n);
}

static Bound off(const Prover *p, const Score *x)
{
    const VarInfo *v = solver_var(p->s, x->s);
    return x->a > 0 ? (Bound){x->s, INT32_MIN, v->lo} : (Bound){x->s, v->hi, INT32_MAX};
}
static Bound on(const Prover *p, const Score *x)
{
    const VarInfo *v = solver_var(p->s, x->s);
    return x->a > 0 ? (Bound){x->s, v->hi, INT32_MAX} : (Bound){x->s, INT32_MIN, v->lo};
}

/* Kind k is on and no kind of a higher score is; of those only the next class's, where fewer facts make a shorter search. */
static uint32_t winning(const Prover *p, const Score *x, uint32_t k, bool next_only, Bound *b)
{
    uint32_t n = 0;
    double next = INFINITY;
    for (uint32_t j = 0; j < p->m->nkinds; j++)
        if (!x[j].fixed && x[j].hi > x[k].hi) next = fmin(next, x[j].hi);
    if (!x[k].fixed) b[n++] = on(p, &x[k]);
    for (uint32_t j = 0; j < p->m->nkinds; j++)
        if (!x[j].fixed && j != k && x[j].hi + x[j].bits > x[k].hi + x[k].bits && (!next_only || x[j].hi <= next)) b[n++] = off(p, &x[j]);
    return n;
}

static bool kind_gaps(Prover *p, const Score *x, uint32_t k)
{
    double top = x[k].hi + x[k].bits, least = INFINITY;
    const ChipKind *c = &p->m->kind[k];
    if (c->width && !lose(p, k, gap(p, top, top - 2 * x[k].least), top, "another payload", &least)) return false;
    if (p->g->vocab > p->m->end && !lose(p, k, gap(p, top, 0), top, "an unused row", &least)) return false;
    for (uint32_t j = 0; j < p->m->nkinds; j++) {
        if (j == k) continue;
        double o = x[j].hi + x[j].bits;
        if (!x[j].fixed && !lose(p, k, gap(p, top, x[j].lo + x[j].bits), top, p->m->kind[j].name, &least)) return false;
        if (o > top) continue; /* then k is not the right one */
        double g = gap(p, top, o);
        if (g <= 0 && exclusive(p, x, k, j)) continue;
        if (!lose(p, k, g, top, p->m->kind[j].name, &least)) return false;
    }
    p->kind_gap[k] = least;
    return true;
}

/* Some kind is always on. */
static bool complete(Prover *p, const Score *x)
{
    Bound *none = pool_array(p->pool, p->m->nkinds + 1, sizeof *none);
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->m->nkinds; k++) {
        if (x[k].fixed && x[k].hi + x[k].bits > 0) return true;
        if (!x[k].fixed) none[n++] = off(p, &x[k]);
    }
    return solver_impossible(p->s, none, n) || not_shown(p, "head: a pass may choose no kind");
}

/* What a pass over the loader's tokens says is not fed; after an exit or a fault nothing is. */
static bool is_fed_after(const Prover *p, uint32_t kind)
{
    ChipRole r = p->m->kind[kind].role;
    return r != CHIP_LOAD && r != CHIP_EXIT && r != CHIP_FAULT;
}

/* In no pass over a token of kind `given` is kind k said while the count is full. */
static bool never_after(Prover *p, const Score *x, const Count *c, uint32_t k, uint32_t given)
{
    Bound *b = pool_array(p->pool, p->m->nkinds + 3, sizeof *b);
    for (int next_only = 1; next_only >= 0; next_only--) {
        uint32_t n = winning(p, x, k, next_only, b);
        b[n++] = (Bound){c->value, c->max, c->max};
        b[n++] = (Bound){p->kind_var[given], 1, 1};
        if (solver_never(p->s, b, n)) return true;
    }
    return false;
}

/* A count that is full is not added to: no kind that adds is said then. */
static bool count_bounded(Prover *p, const Score *x, const Count *c)
{
    for (uint32_t k = 0; k < p->m->nkinds; k++) {
        int32_t adds;
        if (solver_fixed(p->s, (Bound){p->kind_var[k], 1, 1}, c->bump, &adds) && !adds) continue;
        const ChipKind *kind = &p->m->kind[k];
        if (kind->role == CHIP_INPUT || kind->role == CHIP_START || kind->role == CHIP_LOAD)
            return not_shown(p, "layer %d: head %u: the host's token %s adds to a count", c->layer, c->head, kind->name);
        if (kind->role == CHIP_EXIT || kind->role == CHIP_FAULT || (x[k].fixed && x[k].hi + x[k].bits <= 0)) continue;
        for (uint32_t j = 0; j < p->m->nkinds; j++)
            if (is_fed_after(p, j) && !never_after(p, x, c, k, j))
                note(p, "kind %s is not said after kind %s while the count of layer %d, head %u, is %d", kind->name, p->m->kind[j].name, c->layer, c->head, c->max);
    }
    return true;
}

bool prove_argmax(Prover *p)
{
    Form *kind, *bit;
    if (!forms_make(p, &p->m->head_kind, "lm_head", &p->m->final_norm, &kind)) return false;
    if (!forms_make(p, &p->m->head_bit, "lm_head", &p->m->final_norm, &bit) || !rows_hold(p)) return false;
    Score *x = pool_array(p->pool, p->m->nkinds + 1, sizeof *x);
    p->kind_gap = pool_array(p->pool, p->m->nkinds + 1, sizeof *p->kind_gap);
    for (uint32_t k = 0; k < p->m->nkinds; k++)
        if (!score_of(p, k, &kind[k], bit + (size_t)k * p->m->max_width, &x[k])) return false;
    if (!complete(p, x)) return false;
    for (uint32_t k = 0; k < p->m->nkinds; k++) {
        if (x[k].fixed && x[k].hi + x[k].bits <= 0) { /* never said */
            p->kind_gap[k] = INFINITY;
            continue;
        }
        if (!kind_gaps(p, x, k)) return false;
    }
    for (uint32_t i = 0; i < p->counts.n; i++)
        if (!count_bounded(p, x, &p->counts.data[i])) return false;
    return true;
}
