/* prove_cells.c: the rows of one value head: what they may hold, for ever, and what reading them gives.
 *
 * Invariant: a row is all zero, or its pilot lanes hold P and every other lane holds 0 or the one value H of a set bit (a count: n units,
 * 0 <= n <= max). It holds at the start by the state map. A token either leaves a row as it is, bit for bit (beta 0, or key 0), or
 * replaces it by the value vector (beta 1, key 1), or, where the head counts, adds one unit to the count and nothing to the others. */
#include "prove_priv.h"
#include <stdlib.h>

typedef struct {
    bool pilot, bit, count;
    double value;   /* P, H, or the count's unit */
    int32_t max;    /* of a count */
    double add;     /* what the count's lane says when it is added to */
} Lane;

typedef struct {
    Delta *d;
    Prover *p;
    uint32_t head;
    bool written;        /* beta may be 1 */
    bool counts;         /* beta may be the small power */
    uint32_t bump_ch;    /* ... when this channel is 1 */
    float beta[5];       /* and this is its value, the nominal one first */
    uint32_t nbeta;
    Lane *lane;          /* [dv] */
    uint32_t npilots;
    double pilot;
} Rows;

/* ---- beta ---- */
static bool without(Prover *p, const Form *f, uint32_t ch, Form *out, double *c)
{
    *out = *f;
    out->t = pool_array(p->pool, f->n + 1, sizeof *out->t);
    out->n = 0;
    *c = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].ch == ch) *c = f->t[i].c;
        else out->t[out->n++] = f->t[i];
    return *c != 0;
}

/* 0: some value is neither; else bit 0: may be off, bit 1: may be on. */
static int saturated(Prover *p, const Form *f)
{
    Var s;
    double a, k;
    int seen = 0;
    if (!form_var(p, f, &s, &a, &k)) return 0;
    const RealValues *all = form_values(p, s, a, k);
    for (uint32_t i = 0; all && i < all->n; i++) {
        double v = all->v[i];
        if (v < SIGMOID_ONE && v > -SILU_OFF) return 0;
        seen |= v > 0 ? 2 : 1;
    }
    return seen;
}

static bool beta_margins(Rows *r, const Form *f)
{
    Prover *p = r->p;
    Var s;
    double a, k;
    if (!form_exact(p, f, "in_proj_b", r->head, 0) || !form_var(p, f, &s, &a, &k)) return false;
    const RealValues *all = form_values(p, s, a, k);
    for (uint32_t i = 0; all && i < all->n; i++) {
        double v = all->v[i];
        if (!margin(p, M_BETA, v > 0 ? v / SIGMOID_ONE : -v / SILU_OFF, "in_proj_b", r->head, 0)) return false;
    }
    return all != NULL;
}

/* The row's sum when `ch` is 1: everything else must then be fixed. The rounding must not depend on the order of summation: either all
 * products are multiples of a unit, or there are only two that are not 0. */
static bool fixed_sum(Rows *r, const Form *rest, double c, const char *what, uint32_t row, double *out)
{
    Prover *p = r->p;
    Bound bump = {p->chan[r->bump_ch], 1, 1};
    double sum = rest->k + c, abs = rest->kabs + fabs(c), unit = low_bit(c);
    int parts = 1 + (rest->k != 0);
    if (rest->kunit != 0 && rest->kunit < unit) unit = rest->kunit;
    for (uint32_t i = 0; i < rest->n; i++) {
        int32_t x;
        if (!solver_fixed(p->s, bump, p->chan[rest->t[i].ch], &x))
            return not_shown(p, "layer %d: %s row %u: channel %u is not fixed while channel %u is 1", p->layer, what, row, rest->t[i].ch, r->bump_ch);
        if (x == 0) continue;
        double v = rest->t[i].c * x;
        sum += v, abs += fabs(v), parts++;
        unit = fmin(unit, low_bit(v));
    }
    if (parts > 2 || fabs(rest->k) != rest->kabs) {
        if (!margin(p, M_SUM, 0x1p24 * unit / abs, what, row, 0)) return false;
    }
    *out = round_to(p->bf16, round_to(false, sum));
    return true;
}

/* sigmoid(b) in the dtype for an exponential of up to one ulp of error; the correctly rounded one first. */
static void beta_values(Rows *r, double b)
{
    float e = (float)exp(-b), near[3] = {e, nextafterf(e, 0), nextafterf(e, INFINITY)};
    r->nbeta = 0;
    for (int i = 0; i < 3; i++) {
        float v = cast(r->p->bf16, 1.0f / (1.0f + near[i]));
        bool seen = false;
        for (uint32_t k = 0; k < r->nbeta; k++) seen |= r->beta[k] == v;
        if (!seen) r->beta[r->nbeta++] = v;
    }
}

static bool find_bump(Rows *r, const Form *f)
{
    Prover *p = r->p;
    for (uint32_t i = 0; i < f->n; i++) {
        Form rest;
        double c, b;
        uint32_t ch = f->t[i].ch;
        if (chan_lo(p, ch) != 0 || chan_hi(p, ch) != 1 || !without(p, f, ch, &rest, &c)) continue;
        int seen = saturated(p, &rest);
        if (!seen) continue;
        r->bump_ch = ch, r->counts = true, r->written = seen & 2;
        if (!beta_margins(r, &rest) || !fixed_sum(r, &rest, c, "in_proj_b", r->head, &b)) return false;
        if (b > -20 || b < -60) return refuse(p, "layer %d: value head %u: beta's logit may be %g", p->layer, r->head, b);
        beta_values(r, b);
        return true;
    }
    return not_shown(p, "layer %d: value head %u: beta is neither 0 nor 1", p->layer, r->head);
}

static bool find_beta(Rows *r)
{
    const Form *f = &r->d->b[r->head];
    int seen = saturated(r->p, f);
    if (!seen) return find_bump(r, f);
    r->written = seen & 2;
    return beta_margins(r, f);
}

/* ---- lanes ---- */
static const ConvRow *value_row(const Rows *r, uint32_t lane, uint32_t *index)
{
    const Geometry *g = r->p->g;
    *index = 2 * g->nk * g->dk + r->head * g->dv + lane;
    return &r->d->qkv[*index];
}

/* A lane that the accumulator adds to. */
static bool count_lane(Rows *r, uint32_t i, uint32_t index, const Form *rest, double c)
{
    Prover *p = r->p;
    const Installed *map = &r->d->map[r->head];
    Lane *x = &r->lane[i];
    Var s;
    double a, k, lo, hi;
    *x = (Lane){.count = true, .value = map->count[i], .max = map->count_max};
    if (!map->always || x->value == 0 || low_bit(x->value) != x->value)
        return refuse(p, "layer %d: value head %u lane %u is added to, but the state map knows no count there", p->layer, r->head, i);
    if (!silu_row(p, rest, "value", index, M_CELL, &s, &a, &k) || !fixed_sum(r, rest, c, "value", index, &x->add)) return false;
    form_range(p, rest, &lo, &hi);
    if (lo < 0 || hi > x->max * x->value || (s != NO_VAR && fmod(a, x->value) != 0) || fmod(k, x->value) != 0)
        return not_shown(p, "layer %d: value head %u lane %u: a count may be set to %g", p->layer, r->head, i, hi);
    if (!holds(p->bf16, x->add) || x->add < SILU_ON) return refuse(p, "layer %d: value row %u: %g", p->layer, index, x->add);
    return true;
}

static bool value_lane(Rows *r, uint32_t i)
{
    Prover *p = r->p;
    uint32_t index;
    const ConvRow *c = value_row(r, i, &index);
    Lane *x = &r->lane[i];
    Form rest;
    double bump, a, k, value = 0;
    Var s;
    if (!c->any) return true;
    if (r->counts && without(p, c->f, r->bump_ch, &rest, &bump)) return c->tap == 0 ? count_lane(r, i, index, &rest, bump) : refuse(p, "layer %d: value row %u", p->layer, index);
    if (c->f->n == 2 && c->f->t[0].c == c->f->t[1].c) form_pair(p, c->f->t[0].ch, c->f->t[1].ch);
    if (!silu_row(p, c->f, "value", index, M_CELL, &s, &a, &k)) return false;
    const RealValues *all = form_values(p, s, a, k);
    if (!all) return false;
    for (uint32_t n = 0; n < all->n; n++) {
        double v = all->v[n];
        if (v <= 0) continue;
        if (value != 0 && value != v) return not_shown(p, "layer %d: value row %u: a cell may be set to %g or %g", p->layer, index, value, v);
        value = v;
    }
    if (value == 0) return true;
    if (low_bit(value) != value) return not_shown(p, "layer %d: value row %u: a cell is set to %g", p->layer, index, value);
    *x = (Lane){.value = value};
    if (s == NO_VAR && c->tap == 0) x->pilot = true;
    else x->bit = true;
    return true;
}

/* What the loader installs must be what the head itself would write: a bit's lane may be left at 0 by a write, a pilot's may not. */
static bool merge_lane(Rows *r, uint32_t i)
{
    const Installed *map = &r->d->map[r->head];
    Lane *x = &r->lane[i];
    bool pilot = map->pilot[i] != 0, count = map->count[i] != 0, writes = r->written || r->counts;
    double v = pilot ? map->pilot[i] : count ? map->count[i] : map->one[i];
    if (v == 0) return true;
    if (pilot && writes && !x->pilot) return refuse(r->p, "layer %d: value head %u: lane %u is a pilot that a write does not keep", r->p->layer, r->head, i);
    if (x->value == 0) *x = (Lane){.pilot = pilot, .count = count, .bit = !pilot && !count, .value = v, .max = map->count_max};
    if (x->value == v && pilot == x->pilot && count == x->count) return true;
    if (x->value == v && x->pilot && !pilot && !count) { /* a bit that is always written as 1 */
        x->pilot = false, x->bit = true;
        return true;
    }
    return not_shown(r->p, "layer %d: value head %u lane %u: the state map installs %g, the head writes %g", r->p->layer, r->head, i, v, x->value);
}

static bool merge_map(Rows *r)
{
    for (uint32_t i = 0; i < r->p->g->dv; i++)
        if (!merge_lane(r, i)) return false;
    return true;
}

/* Constant lanes of the largest value are the pilots; a smaller constant is a bit that is always 1. */
static bool find_pilots(Rows *r)
{
    const Installed *map = &r->d->map[r->head];
    for (uint32_t i = 0; i < r->p->g->dv; i++)
        if (r->lane[i].pilot && r->lane[i].value > r->pilot) r->pilot = r->lane[i].value;
    for (uint32_t i = 0; i < r->p->g->dv; i++) {
        Lane *x = &r->lane[i];
        if (x->pilot && x->value < r->pilot) x->pilot = false, x->bit = true;
        r->npilots += x->pilot;
        if (x->pilot && map->any && map->pilot[i] == 0)
            return refuse(r->p, "layer %d: value head %u: lane %u is a pilot that the state map does not install", r->p->layer, r->head, i);
    }
    return true;
}

/* v - S is exact: both are multiples of a unit. */
static bool overwrites(Rows *r)
{
    for (uint32_t i = 0; i < r->p->g->dv; i++) {
        const Lane *x = &r->lane[i];
        if (x->value != 0 && !margin(r->p, M_CELL, 0x1p24 / fmax(1, x->count ? x->max : 1), "cell", r->head * r->p->g->dv + i, 0)) return false;
    }
    return true;
}

/* One addition, by its float32 operations: lane holds `old` and is offered v. */
static float add_small(float old, double v, float beta) { return old + 1.0f * (beta * ((float)v - old)); }

static bool additions(Rows *r)
{
    Prover *p = r->p;
    bool any = false;
    for (uint32_t b = 0; b < r->nbeta; b++) {
        bool ok = true;
        for (uint32_t i = 0; i < p->g->dv; i++) {
            const Lane *x = &r->lane[i];
            float beta = r->beta[b], one = (float)x->value;
            if (x->bit) return refuse(p, "layer %d: value head %u lane %u: a cell beside a count, of which the chunked form may leave a part", p->layer, r->head, i);
            if (x->pilot) ok &= add_small(one, one, beta) == one;
            for (int32_t n = 0; x->count && n < x->max; n++) ok &= add_small((float)(n * x->value), x->add, beta) == (float)((n + 1) * x->value);
        }
        if (b == 0 && !ok) return refuse(p, "layer %d: value head %u: adding to a count is not exact", p->layer, r->head);
        if (!ok && !any) note(p, "layer %d, value head %u: exp of beta's logit is correctly rounded (an ulp beside, counts are off by 2^-23 of themselves)", p->layer, r->head), any = true;
    }
    return true;
}

/* ---- reading ---- */
/* One lane of a row whose pilots hold P, read with query entry q through gate value z: the stock layer's operations; both reciprocal square roots
 * are off by the factor 1 + slack. */
static double read_lane(const Rows *r, double cell, float q, float gain, float z, double slack)
{
    q = (float)(q * (1 + slack));
    const Prover *p = r->p;
    float op = cast(p->bf16, (float)r->pilot * q), o = cast(p->bf16, (float)cell * q), sum = 0;
    for (uint32_t i = 0; i < r->npilots; i++) sum += op * op;
    float f = (float)(rsqrtf(sum / (float)p->g->dv + p->g->eps) * (1 + slack));
    float n = cast(p->bf16, gain * cast(p->bf16, o * f));
    return cast(p->bf16, n * siluf(z));
}

/* The data lanes do not show in the mean square, in any order of summation. */
static bool pilots_rule(Rows *r)
{
    Prover *p = r->p;
    const KeyHead *k = &r->d->key[r->head / (p->g->nv / p->g->nk)];
    double energy = 0, qmax = 0, qmin = INFINITY;
    for (uint32_t i = 0; i < p->g->dv; i++)
        if (!r->lane[i].pilot) energy += pow(r->lane[i].value * (r->lane[i].count ? r->lane[i].max : 1), 2);
    for (uint32_t i = 0; i < k->nq; i++) qmax = fmax(qmax, k->q[i]), qmin = fmin(qmin, k->q[i]);
    double pilot = r->pilot * r->pilot * qmin * qmin, half = ldexp(1, ilogb(pilot) - 25);
    return margin(p, M_READ, half / fmax(energy * qmax * qmax * 1.02, (double)p->g->eps * p->g->dv), "pilots of value head", r->head, 0);
}

/* In float32 the norms' factors are powers of two, which every reciprocal square root in use hits, unless the query's entry is none; then, and in
 * bfloat16, where the casts must absorb it, any error up to these is allowed, many times that of the instructions of GPUs (2 ulp, 2^-22). */
static const double slacks[2][3] = {{0, 0x1p-21, -0x1p-21}, {0, 0x1p-18, -0x1p-18}};
#define READ_ERROR 0x1p-18   /* of itself, at most, before what follows is added */
#define READ_ROUNDING 0x1p-22 /* other orders of a read's four roundings */

/* The power of two nearest to y. */
static double near_power(double y) { return y > 0 ? ldexp(1, (int)lround(log2(y))) : 0; }

/* Every count (or 0 and 1) reads as that multiple of out->unit; in float32 nearly. */
static bool read_multiples(Rows *r, uint32_t i, float q, float gain, float z, double slack, LaneRead *out)
{
    const Lane *x = &r->lane[i];
    for (int32_t n = 1; n <= (x->count ? x->max : 1); n++) {
        double y = read_lane(r, n * x->value, q, gain, z, slack);
        if (out->unit == 0) out->unit = r->p->bf16 ? y : near_power(y);
        double error = fabs(y / (n * out->unit) - 1);
        out->error = fmax(out->error, error);
        if (!(error <= (r->p->bf16 ? 0 : READ_ERROR)) || low_bit(out->unit) != out->unit)
            return refuse(r->p, "layer %d: value head %u lane %u: %d reads as %.9g", r->p->layer, r->head, i, n, y);
    }
    return true;
}

/* For every form of the query and every gate value. */
static bool read_values(Rows *r, uint32_t i, float gain, const double *z, uint32_t nz, LaneRead *out)
{
    Prover *p = r->p;
    const KeyHead *k = &r->d->key[r->head / (p->g->nv / p->g->nk)];
    out->unit = 0, out->error = 0;
    bool exact = !p->bf16 && !k->rounded;
    for (int s = 0; s < (exact ? 1 : 3); s++)
        for (uint32_t a = 0; a < k->nq; a++)
            for (uint32_t b = 0; b < nz; b++)
                if (!read_multiples(r, i, k->q[a], gain, (float)z[b], slacks[p->bf16][s], out)) return false;
    if (exact && out->error > 0) return refuse(p, "layer %d: value head %u lane %u: 1 is read with an error of %.3g", p->layer, r->head, i, out->error);
    if (!exact && !p->bf16) out->error += READ_ROUNDING;
    out->most = (r->lane[i].count ? r->lane[i].max : 1) * out->unit;
    return true;
}

static bool gate_values(Rows *r, uint32_t index, LaneRead *out, double *z, uint32_t *nz)
{
    Prover *p = r->p;
    double least = INFINITY;
    *nz = 0;
    Var s;
    double a, k;
    if (!silu_row(p, &r->d->z[index], "in_proj_z", index, M_GATE_ON, &s, &a, &k) || !gate_form(p, &r->d->z[index], &out->gate)) return false;
    const RealValues *all = form_values(p, s, a, k);
    if (!all) return false;
    for (uint32_t n = 0; n < all->n; n++) {
        double v = all->v[n];
        least = fmin(least, v);
        if (v <= 0) continue;
        if (*nz == 8) return refuse(p, "layer %d: in_proj_z row %u has many values", p->layer, index);
        z[(*nz)++] = v;
    }
    out->gated = least <= 0;
    return true;
}

static bool read_one(Rows *r, uint32_t i, float gain)
{
    Prover *p = r->p;
    uint32_t index = r->head * p->g->dv + i;
    LaneRead *out = &r->d->lane[index];
    double z[8];
    uint32_t nz;
    *out = (LaneRead){.value = NO_VAR, .unit = 1};
    if (!r->d->read[index] || r->lane[i].value == 0) return true;
    if (!gate_values(r, index, out, z, &nz)) return false;
    if (nz == 0) return true;
    if (r->npilots == 0) return refuse(p, "layer %d: value head %u is read but has no pilots", p->layer, r->head);
    if (!read_values(r, i, gain, z, nz, out)) return false;
    out->value = solver_free_var(p->s, 0, r->lane[i].count ? r->lane[i].max : 1);
    if (r->lane[i].count && r->counts)
        vec_push(&p->counts, ((Count){out->value, p->chan[r->bump_ch], r->lane[i].max, p->layer, r->head}));
    return true;
}

static bool reads(Rows *r)
{
    Prover *p = r->p;
    const Tensor *t = &r->d->l->t[T_NORM];
    uint32_t base = r->head * p->g->dv;
    bool any = false;
    for (uint32_t i = 0; i < p->g->dv; i++) any |= r->d->read[base + i] && r->lane[i].value != 0;
    if (any && r->npilots && !pilots_rule(r)) return false;
    for (uint32_t i = 0; i < p->g->dv; i++) {
        float gain = t->fill;
        for (uint32_t k = 0; any && k < t->n; k++)
            if ((uint32_t)t->row[k] == i) gain = t->value[k];
        if (!read_one(r, i, gain)) return false;
    }
    return true;
}

static void save_cells(const Rows *r)
{
    const Geometry *g = r->p->g;
    for (uint32_t i = 0; r->p->cells && i < g->dv; i++) {
        const Lane *x = &r->lane[i];
        r->p->cells[((size_t)r->p->layer * g->nv + r->head) * g->dv + i] = (CellBand){(float)x->value, x->count ? x->max : x->value != 0, x->pilot};
    }
}

bool prove_cells(Delta *d, uint32_t head)
{
    Prover *p = d->p;
    Rows r = {.d = d, .p = p, .head = head, .lane = pool_array(p->pool, p->g->dv, sizeof(Lane))};
    const KeyHead *k = &d->key[head / (p->g->nv / p->g->nk)];
    bool values = false;
    uint32_t index;
    for (uint32_t i = 0; i < p->g->dv; i++) values |= value_row(&r, i, &index)->any;
    bool idle = !d->b[head].n && d->b[head].k == 0; /* beta 1/2: nothing may be there to be halved */
    if (idle && (values || d->map[head].any)) return refuse(p, "layer %d: value head %u: beta is 1/2", p->layer, head);
    if (!idle && !find_beta(&r)) return false;
    if (k->dummy && d->map[head].rows >= k->dummy)
        return refuse(p, "layer %d: value head %u: row %u is in every query and is installed", p->layer, head, k->dummy - 1);
    for (uint32_t i = 0; (r.written || r.counts) && i < p->g->dv; i++)
        if (!value_lane(&r, i)) return false;
    if (r.written && !k->key) r.written = false;
    if (!merge_map(&r) || !find_pilots(&r) || !overwrites(&r)) return false;
    if (r.counts && !additions(&r)) return false;
    save_cells(&r);
    return reads(&r);
}
