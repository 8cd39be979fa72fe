/* prove_form.c: rows of projections as affine forms over channels, the rounding of their sums, and channels' new definitions.
 *
 * A normalised channel is n * 2^-K with n an integer in the channel's range, a pilot is a constant. So every product of a row
 * is a multiple of a power of two, the row's unit; when the sum of the products' magnitudes is below 2^24 units, every partial
 * sum of every summation order is a float32 number: nothing is ever rounded (numerics.md, "Projections"). */
#include "prove_priv.h"
#include <stdlib.h>

enum { VAIN = 20000, /* nodes of searches for ranges that were not shown */ MAX_TABLE = 1 << 16, MAX_INSERTION = 32 };
#define FINITE 0x1p62 /* so that a product of two is finite */

double low_bit(double v)
{
    uint64_t bits, ones;
    if (v == 0) return 0;
    memcpy(&bits, &v, sizeof bits);
    ones = bits & ((1ull << 52) - 1);
    int e = (int)(bits >> 52 & 0x7ff);
    if (e > 52 && e < 0x7ff) { /* the leading 1 is worth 2^52 of the last place */
        bits = (uint64_t)(e - 52 + __builtin_ctzll(ones | 1ull << 52)) << 52;
        return memcpy(&v, &bits, sizeof v), v;
    }
    double m = frexp(fabs(v), &e);
    uint64_t u = (uint64_t)ldexp(m, 53);
    return ldexp((double)(u & -u), e - 53);
}

/* The largest power of two that divides both; 0 stands for 0. */
static double common(double a, double b) { return a == 0 ? b : b == 0 ? a : a < b ? a : b; }

double round_to(bool bf16, double v)
{
    if (v == 0) return 0;
    int e;
    frexp(v, &e);
    double unit = ldexp(1, e - (bf16 ? 8 : 24));
    return nearbyint(v / unit) * unit;
}

bool holds(bool bf16, double v) { return round_to(bf16, v) == v && fabs(v) < 0x1p127; }

int32_t chan_lo(const Prover *p, uint32_t ch) { return p->chan[ch] == NO_VAR ? p->constant[ch] : solver_var(p->s, p->chan[ch])->lo; }
int32_t chan_hi(const Prover *p, uint32_t ch) { return p->chan[ch] == NO_VAR ? p->constant[ch] : solver_var(p->s, p->chan[ch])->hi; }

static double chan_most(const Prover *p, uint32_t ch) { return fmax(abs(chan_lo(p, ch)), abs(chan_hi(p, ch))); }

/* ---- forms ---- */
static bool gains(Prover *p, const Tensor *gain, const char *name, double *out)
{
    for (uint32_t i = 0; i < p->g->hidden; i++) out[i] = 1 + (double)gain->fill;
    for (uint32_t i = 0; i < gain->n; i++) out[gain->row[i]] = 1 + (double)gain->value[i];
    for (uint32_t i = 0; i < p->g->hidden; i++)
        if (out[i] != 0 && low_bit(out[i]) != fabs(out[i])) return refuse(p, "layer %d: %s: gain %u is %g, no power of two", p->layer, name, i, out[i]);
    return true;
}

static void add_constant(Form *f, double v)
{
    f->k += v;
    f->kabs += fabs(v);
    f->kunit = common(f->kunit, low_bit(v));
}

static void add_element(Prover *p, Form *f, uint32_t ch, double w)
{
    if (w == 0) return;
    if (p->pilot[ch]) add_constant(f, w * p->pilot_value[ch] / p->scale);
    else if (p->chan[ch] == NO_VAR) add_constant(f, w * p->constant[ch] / p->scale);
    else f->t[f->n++] = (FormTerm){ch, w / p->scale};
}

bool forms_make(Prover *p, const Tensor *t, const char *name, const Tensor *gain, Form **out)
{
    Form *f = *out = pool_array(p->pool, t->rows, sizeof *f);
    FormTerm *store = pool_array(p->pool, t->n + 1, sizeof *store);
    double *g = pool_array(p->pool, p->g->hidden, sizeof *g);
    if (t->fill != 0) return refuse(p, "layer %d: %s is filled with %g", p->layer, name, (double)t->fill);
    if (!gains(p, gain, "a norm before it", g)) return false;
    uint32_t used = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        Form *x = &f[t->row[i]];
        if (!x->t) x->t = store + used;
        uint32_t before = x->n;
        add_element(p, x, (uint32_t)t->col[i], (double)t->value[i] * g[t->col[i]]);
        used += x->n - before;
    }
    for (uint32_t r = 0; r < t->rows; r++) { /* also what is multiplied by 0 must be finite */
        double sum = f[r].kabs;
        for (uint32_t i = 0; i < f[r].n; i++) sum += fabs(f[r].t[i].c) * chan_most(p, f[r].t[i].ch);
        if (!(sum < FINITE)) return refuse(p, "layer %d: %s row %u may be %g", p->layer, name, r, sum);
    }
    return true;
}

void form_range(const Prover *p, const Form *f, double *lo, double *hi)
{
    *lo = *hi = f->k;
    for (uint32_t i = 0; i < f->n; i++) {
        double a = f->t[i].c * chan_lo(p, f->t[i].ch), b = f->t[i].c * chan_hi(p, f->t[i].ch);
        *lo += a < b ? a : b, *hi += a < b ? b : a;
    }
}

bool form_exact(Prover *p, const Form *f, const char *name, uint32_t row, uint32_t line)
{
    double sum = f->kabs, unit = f->kunit;
    for (uint32_t i = 0; i < f->n; i++) {
        sum += fabs(f->t[i].c) * chan_most(p, f->t[i].ch);
        unit = common(unit, low_bit(f->t[i].c));
    }
    return sum == 0 || margin(p, M_SUM, 0x1p24 * unit / sum, name, row, line);
}

static int by_var(const void *a, const void *b)
{
    const VarTerm *x = a, *y = b;
    return x->v < y->v ? -1 : x->v > y->v;
}

/* Forms are short and nearly in order. */
static void sort_terms(VarTerm *t, uint32_t n)
{
    if (n > MAX_INSERTION) qsort(t, n, sizeof *t, by_var);
    for (uint32_t i = 1; n <= MAX_INSERTION && i < n; i++) {
        VarTerm x = t[i];
        uint32_t k = i;
        for (; k && t[k - 1].v > x.v; k--) t[k] = t[k - 1];
        t[k] = x;
    }
}

/* Sorts, adds up equal variables, drops zeros. */
static uint32_t tidy(VarTerm *t, uint32_t n)
{
    uint32_t k = 0;
    sort_terms(t, n);
    for (uint32_t i = 0; i < n; i++) {
        if (k && t[k - 1].v == t[i].v) t[k - 1].c += t[i].c;
        else t[k++] = t[i];
        if (t[k - 1].c == 0) k--;
    }
    return k;
}

static Var pair_sum(const Prover *p, Var x, Var y)
{
    for (uint32_t i = x < p->first_pair.n ? p->first_pair.data[x] : 0; i; i = p->pairs.data[i - 1].next)
        if (p->pairs.data[i - 1].y == y) return p->pairs.data[i - 1].sum;
    return NO_VAR;
}

void form_pair(Prover *p, uint32_t a, uint32_t b)
{
    Var x = p->chan[a], y = p->chan[b];
    if (x == NO_VAR || y == NO_VAR || x == y) return;
    if (x > y) x = p->chan[b], y = p->chan[a];
    const VarInfo *vx = solver_var(p->s, x), *vy = solver_var(p->s, y);
    int32_t least = vx->lo + vy->lo; /* of two values each, and never both at the larger */
    if (vx->hi - vx->lo != 1 || vy->hi - vy->lo != 1 || pair_sum(p, x, y) != NO_VAR || !solver_exclusive(p->s, x, y)) return;
    VarTerm both[2] = {{x, 1}, {y, 1}};
    Var sum = solver_def(p->s, 0, both, 2, NULL, 0);
    solver_limit(p->s, sum, least, least + 1);
    while (p->first_pair.n <= x) vec_push(&p->first_pair, 0);
    vec_push(&p->pairs, ((Pair){y, sum, p->first_pair.data[x]}));
    p->first_pair.data[x] = p->pairs.n;
}

/* Terms of known pairs become one; again tidy. */
static uint32_t merge_pairs(const Prover *p, VarTerm *t, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; p->pairs.n && i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            if (t[i].c != t[j].c || !t[i].c) continue;
            Var sum = pair_sum(p, t[i].v, t[j].v);
            if (sum == NO_VAR) continue;
            t[i].v = sum, t[j].c = 0, any = true;
            break;
        }
    return any ? tidy(t, n) : n;
}

static int64_t gcd(int64_t a, int64_t b)
{
    a = llabs(a);
    for (b = llabs(b); b;) {
        int64_t r = a % b;
        a = b, b = r;
    }
    return a;
}

/* Variables and forms are 32-bit integers. */
static bool integer_terms(Prover *p, const Form *f, double unit, VarTerm *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        double c = f->t[i].c / unit;
        sum += fabs(c) * chan_most(p, f->t[i].ch);
        if (fabs(c) >= 0x1p30 || sum >= 0x1p30) return refuse(p, "layer %d: a form's coefficients are too far apart", p->layer);
        t[i] = (VarTerm){p->chan[f->t[i].ch], (int32_t)c};
    }
    return true;
}

static double unit_of(const Form *f)
{
    double unit = 0;
    for (uint32_t i = 0; i < f->n; i++) unit = common(unit, low_bit(f->t[i].c));
    return unit;
}

bool form_var(Prover *p, const Form *f, Var *s, double *a, double *k)
{
    VarTerm *t = xrealloc(NULL, (f->n + 1) * sizeof *t);
    double unit = unit_of(f);
    *s = NO_VAR, *a = 0, *k = f->k;
    bool ok = integer_terms(p, f, unit, t);
    uint32_t n = ok ? merge_pairs(p, t, tidy(t, f->n)) : 0;
    if (n) {
        int64_t d = 0;
        for (uint32_t i = 0; i < n; i++) d = gcd(d, t[i].c);
        if (t[0].c < 0) d = -d;
        for (uint32_t i = 0; i < n; i++) t[i].c = (int32_t)(t[i].c / d);
        *a = unit * (double)d;
        *s = solver_lin(p->s, t, n);
    }
    free(t);
    return ok;
}

const RealValues *form_values(Prover *p, Var s, double a, double k)
{
    const Values *in = NULL;
    if (s != NO_VAR && !(in = solver_values(p->s, s))) return not_shown(p, "layer %d: a form has too many values", p->layer), NULL;
    RealValues *r = pool_alloc(p->pool, sizeof *r + (in ? in->n : 1) * sizeof *r->v);
    r->v = (double *)(r + 1), r->n = in ? in->n : 1;
    r->v[0] = k;
    for (uint32_t i = 0; in && i < in->n; i++) r->v[i] = a * in->v[i] + k;
    return r;
}

/* form = q * (m + mk) with q a power of two */
bool form_scaled(Prover *p, const Form *f, Var *m, int32_t *mk, double *q)
{
    VarTerm *t = xrealloc(NULL, (f->n + 1) * sizeof *t);
    *m = NO_VAR, *mk = 1, *q = f->k;
    *q = f->n ? common(unit_of(f), low_bit(f->k)) : f->k;
    bool ok = integer_terms(p, f, *q, t);
    uint32_t n = ok ? tidy(t, f->n) : 0;
    if (n) *m = solver_lin(p->s, t, n), *mk = (int32_t)(f->k / *q);
    else if (f->n) *q = f->k, *mk = 1;
    free(t);
    return ok;
}

/* ---- a channel's new definition ---- */
static uint32_t *slot_of(Sum *x, Var v)
{
    for (uint32_t cap = x->nslot; v >= x->nslot; cap = x->nslot) {
        x->nslot = cap ? 2 * cap : 4096;
        x->slot = xrealloc(x->slot, x->nslot * sizeof *x->slot);
        memset(x->slot + cap, 0, (x->nslot - cap) * sizeof *x->slot);
    }
    return &x->slot[v];
}

/* The table of (s, g, m, mk), made when there is none. */
static RealTable *table_of(Prover *p, Sum *x, RealTable key)
{
    uint32_t *slot = slot_of(x, key.g != NO_VAR ? key.g : key.s);
    for (uint32_t i = *slot; i; i = x->table.data[i - 1].next) {
        RealTable *t = &x->table.data[i - 1];
        if (t->s == key.s && t->g == key.g && t->m == key.m && t->mk == key.mk) return t;
    }
    int64_t n = 1;
    if (key.s != NO_VAR) key.s0 = solver_var(p->s, key.s)->lo, n = (int64_t)solver_var(p->s, key.s)->hi - key.s0 + 1;
    if (n > MAX_TABLE) return NULL;
    key.n = (int32_t)n, key.next = *slot;
    key.t = xrealloc(NULL, (size_t)n * sizeof(double));
    memset(key.t, 0, (size_t)n * sizeof *key.t);
    vec_push(&x->table, key);
    *slot = x->table.n;
    return &x->table.data[x->table.n - 1];
}

void sum_begin(Sum *x, Prover *p, uint32_t ch)
{
    for (uint32_t i = 0; i < x->table.n; i++) {
        x->slot[x->table.data[i].g != NO_VAR ? x->table.data[i].g : x->table.data[i].s] = 0;
        free(x->table.data[i].t);
    }
    x->table.n = x->lin.n = x->add.n = 0;
    x->k = 0, x->absum = 0, x->unit = 0, x->line = 0, x->ch = ch;
    if (chan_lo(p, ch) == chan_hi(p, ch)) x->k = chan_lo(p, ch);
    else vec_push(&x->lin, ((RealTerm){p->chan[ch], 1}));
}

void sum_read(Sum *x, Prover *p, uint32_t ch)
{
    sum_begin(x, p, ch);
    if (p->chan[ch] == NO_VAR || p->read_of[ch].abstract != p->chan[ch]) return;
    x->lin.n = 0;
    const VarInfo d = *solver_var(p->s, p->read_of[ch].exact);
    x->k = d.k;
    for (uint32_t i = 0; i < d.nlin; i++) vec_push(&x->lin, ((RealTerm){d.lin[i].v, d.lin[i].c}));
    for (uint32_t i = 0; i < d.ntable; i++) {
        const Table *t = &d.table[i];
        RealTable *r = table_of(p, x, (RealTable){.s = t->s, .g = t->g, .m = t->m, .gtop = t->gtop, .mk = t->mk});
        for (int32_t k = 0; k < r->n; k++) r->t[k] += t->t[r->s0 + k - t->s0];
    }
}

void sum_part(Sum *x, double magnitude, double unit)
{
    x->absum += magnitude;
    x->unit = common(x->unit, unit);
}

void sum_linear(Prover *p, Sum *x, double w, Var m, int32_t mk)
{
    x->k += w * mk;
    if (m == NO_VAR) return;
    const VarInfo *v = solver_var(p->s, m);
    if (v->kind == VAR_LIN)
        for (uint32_t i = 0; i < v->nlin; i++) vec_push(&x->lin, ((RealTerm){v->lin[i].v, w * v->lin[i].c}));
    else vec_push(&x->lin, ((RealTerm){m, w}));
}

void sum_gate(Sum *x, double w, const Gate *gate, bool step, Var m, int32_t mk)
{
    vec_push(&x->add, ((Addend){gate, w, step, m, mk, NO_VAR}));
}

/* ---- gates as guards and a core ---- */
bool gate_form(Prover *p, const Form *f, Gate *out)
{
    double unit = unit_of(f);
    VarTerm *t = pool_array(p->pool, f->n + 1, sizeof *t);
    *out = (Gate){.a = unit, .k = f->k, .hi = f->k, .t = t};
    if (!integer_terms(p, f, unit, t)) return false;
    uint32_t n = tidy(t, f->n);
    for (uint32_t i = 0; i < n; i++) {
        const VarInfo *v = solver_var(p->s, t[i].v);
        if (v->lo == v->hi) out->k += unit * t[i].c * v->lo, out->hi += unit * t[i].c * v->lo;
        else {
            out->hi += unit * t[i].c * (t[i].c > 0 ? v->hi : v->lo);
            t[out->n++] = t[i];
        }
    }
    return true;
}

static bool is_guard(const Prover *p, const Gate *g, VarTerm t)
{
    const VarInfo *v = solver_var(p->s, t.v);
    return v->hi - v->lo == 1 && g->hi - g->a * abs(t.c) <= 0;
}

/* The normalised form of the terms that are no guards; NO_VAR: all are. */
static Var smallest_core(Prover *p, const Gate *g)
{
    VarTerm *t = xrealloc(NULL, (g->n + 1) * sizeof *t);
    uint32_t n = 0;
    int64_t d = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (!is_guard(p, g, g->t[i])) d = gcd(d, g->t[i].c), t[n++] = g->t[i];
    if (n && t[0].c < 0) d = -d;
    for (uint32_t i = 0; i < n; i++) t[i].c = (int32_t)(t[i].c / d);
    Var v = n ? solver_lin(p->s, t, n) : NO_VAR;
    free(t);
    return v;
}

/* The gate is c * core plus guards: c, else 0. */
static int32_t factor_of(const Prover *p, const Gate *g, Var core)
{
    const VarInfo *x = solver_var(p->s, core);
    VarTerm self = {core, 1};
    const VarTerm *t = x->kind == VAR_LIN ? x->lin : &self;
    uint32_t n = x->kind == VAR_LIN ? x->nlin : 1, k = 0;
    int32_t c = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (k < n && g->t[i].v == t[k].v) {
            if (g->t[i].c % t[k].c || (c && g->t[i].c / t[k].c != c)) return 0;
            c = g->t[i].c / t[k++].c;
        } else if (!is_guard(p, g, g->t[i])) return 0;
    }
    return k == n ? c : 0;
}

static void find_cores(Prover *p, Sum *x)
{
    x->cores.n = 0;
    for (uint32_t i = 0; i < x->add.n; i++) {
        Addend *a = &x->add.data[i];
        bool seen = false;
        a->core = smallest_core(p, a->gate);
        if (a->core == NO_VAR) continue;
        for (uint32_t k = 0; k < x->cores.n && !seen; k++) seen = x->cores.data[k] == a->core;
        if (!seen) vec_push(&x->cores, a->core);
    }
    /* steps near the top of a table see some of its bits as guards: they join the table all the same */
    for (uint32_t i = 0; i < x->add.n; i++) {
        Addend *a = &x->add.data[i];
        for (uint32_t k = 0; k < x->cores.n; k++) {
            const VarInfo *c = solver_var(p->s, x->cores.data[k]);
            uint32_t have = a->core == NO_VAR ? 0 : solver_var(p->s, a->core)->kind == VAR_LIN ? solver_var(p->s, a->core)->nlin : 1;
            if ((c->kind == VAR_LIN ? c->nlin : 1) > have && factor_of(p, a->gate, x->cores.data[k])) a->core = x->cores.data[k];
        }
    }
}

static bool add_gate(Prover *p, Sum *x, const Addend *a)
{
    const Gate *g = a->gate;
    VarTerm *t = xrealloc(NULL, (g->n + 1) * sizeof *t);
    const VarInfo *c = a->core == NO_VAR ? NULL : solver_var(p->s, a->core);
    VarTerm self = {a->core, 1};
    const VarTerm *ct = c && c->kind == VAR_LIN ? c->lin : &self;
    uint32_t nc = !c ? 0 : c->kind == VAR_LIN ? c->nlin : 1, k = 0, n = 0;
    RealTable key = {.s = a->core, .g = NO_VAR, .m = a->m, .mk = a->mk};
    double rest = g->k, factor = c ? g->a * factor_of(p, g, a->core) : 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (k < nc && g->t[i].v == ct[k].v) {
            k++;
            continue;
        }
        const VarInfo *v = solver_var(p->s, g->t[i].v);
        int32_t good = g->t[i].c > 0 ? v->hi : -v->lo;
        t[n++] = (VarTerm){g->t[i].v, g->t[i].c > 0 ? 1 : -1};
        key.gtop += good;
        rest += g->a * abs(g->t[i].c) * good;
    }
    if (n) key.g = solver_lin(p->s, t, n);
    free(t);
    if (!n && !c) { /* the gate is constant */
        if (rest > 0) sum_linear(p, x, a->w * (a->step ? 1 : rest), a->m, a->m == NO_VAR ? 1 : a->mk);
        return true;
    }
    RealTable *r = table_of(p, x, key);
    if (!r) return not_shown(p, "layer %d: a gate over more than %d values", p->layer, MAX_TABLE);
    for (int32_t i = 0; i < r->n; i++) {
        double pre = factor * (r->s0 + i) + rest;
        if (pre > 0) r->t[i] += a->w * (a->step ? 1 : pre);
    }
    return true;
}

static int by_real_var(const void *a, const void *b)
{
    const RealTerm *x = a, *y = b;
    return x->v < y->v ? -1 : x->v > y->v;
}

static bool whole(double v) { return v == nearbyint(v) && fabs(v) < 0x1p30; }

static bool finish_lin(Sum *x, VarTerm *out, uint32_t *n)
{
    uint32_t k = 0;
    if (x->lin.n > 1) qsort(x->lin.data, x->lin.n, sizeof *x->lin.data, by_real_var);
    for (uint32_t i = 0; i < x->lin.n; i++) {
        if (k && x->lin.data[k - 1].v == x->lin.data[i].v) x->lin.data[k - 1].c += x->lin.data[i].c;
        else x->lin.data[k++] = x->lin.data[i];
    }
    *n = 0;
    for (uint32_t i = 0; i < k; i++) {
        if (x->lin.data[i].c == 0) continue;
        if (!whole(x->lin.data[i].c)) return false;
        out[(*n)++] = (VarTerm){x->lin.data[i].v, (int32_t)x->lin.data[i].c};
    }
    return whole(x->k);
}

/* A condition on one bit is that bit, which may cancel another term. */
static void bits_to_lin(Prover *p, Sum *x)
{
    for (uint32_t i = 0; i < x->table.n; i++) {
        RealTable *t = &x->table.data[i];
        if (t->s != NO_VAR || t->m != NO_VAR || t->g == NO_VAR) continue;
        const VarInfo *g = solver_var(p->s, t->g);
        if (g->kind == VAR_LIN || g->hi - g->lo != 1 || g->hi != t->gtop) continue;
        vec_push(&x->lin, ((RealTerm){t->g, t->t[0]}));
        x->k -= t->t[0] * g->lo;
        t->t[0] = 0;
    }
}

/* Tables that are 0 everywhere are dropped. */
static bool finish_tables(Prover *p, Sum *x, Table *out, uint32_t *n)
{
    *n = 0;
    for (uint32_t i = 0; i < x->table.n; i++) {
        const RealTable *r = &x->table.data[i];
        bool flat = true;
        int32_t *t = solver_table(p->s, r->n);
        for (int32_t j = 0; j < r->n; j++) {
            double v = r->t[j];
            if (!whole(v)) return false;
            flat &= v == 0;
            t[j] = (int32_t)v;
        }
        if (!flat) out[(*n)++] = (Table){.s = r->s, .g = r->g, .m = r->m, .gtop = r->gtop, .mk = r->mk, .s0 = r->s0, .n = r->n, .t = t};
    }
    return true;
}

/* A sum of gates that exclude each other is a bit, or minus one, or one beside a constant, or a difference of two: as the samples suggest. */
static void tighten(Prover *p, Var v)
{
    const VarInfo *d = solver_var(p->s, v);
    if (d->kind != VAR_DEF || d->hi - d->lo < 2) return;
    int32_t lo, hi, k = d->k; /* the form where every variable is at its least */
    for (uint32_t i = 0; i < d->nlin; i++) k += d->lin[i].c * solver_var(p->s, d->lin[i].v)->lo;
    solver_sampled(p->s, v, &lo, &hi);
    if (hi - lo <= 2) solver_shown(p->s, v, &lo, &hi);
    lo -= k, hi -= k;
    static const int32_t plain[3][2] = {{0, 1}, {-1, 0}, {-1, 1}};
    for (int i = 0; p->vain >= VAIN && d->nlin + d->ntable > 1 && i < 3; i++)
        if (k + plain[i][0] <= d->hi && k + plain[i][1] >= d->lo && solver_prove(p->s, v, k + plain[i][0], k + plain[i][1])) return;
    int32_t guess[4][2] = {{lo, hi}, {lo - (lo > 0), lo + (lo <= 0)}, {lo - (lo <= 0), lo + (lo > 0)}, {lo - 1, lo + 1}}; /* nearest to the constant first */
    if (hi - lo <= 2)
        for (int i = lo == hi; i < (lo == hi ? 4 : 1) && p->vain < VAIN; i++) {
            uint64_t before = solver_nodes(p->s);
            if (solver_prove(p->s, v, k + guess[i][0], k + guess[i][1])) return;
            p->vain += solver_nodes(p->s) - before;
        }
}

bool form_tighten(Prover *p, const Form *f)
{
    bool any = false;
    for (uint32_t i = 0; i < f->n; i++) {
        Var v = p->chan[f->t[i].ch];
        const VarInfo *x = solver_var(p->s, v);
        int32_t lo, hi;
        solver_shown(p->s, v, &lo, &hi);
        if (lo > x->lo || hi < x->hi) any |= solver_prove(p->s, v, lo, hi);
    }
    Var s;
    double a, k;
    if (!any || !form_var(p, f, &s, &a, &k)) return false;
    if (s != NO_VAR) solver_update(p->s, s);
    return true;
}

bool sum_end(Prover *p, Sum *x, const char *name, Var *v)
{
    find_cores(p, x);
    for (uint32_t i = 0; i < x->add.n; i++)
        if (!add_gate(p, x, &x->add.data[i])) return false;
    bits_to_lin(p, x);
    VarTerm *lin = xrealloc(NULL, (x->lin.n + 1) * sizeof *lin);
    Table *table = xrealloc(NULL, (x->table.n + 1) * sizeof *table);
    uint32_t nlin, ntable;
    bool ok = finish_lin(x, lin, &nlin) && finish_tables(p, x, table, &ntable);
    if (!ok) not_shown(p, "layer %d: %s: channel %u: what is added is no integer", p->layer, name, x->ch);
    else *v = solver_def(p->s, (int32_t)x->k, lin, nlin, table, ntable);
    free(lin), free(table);
    if (!ok) return false;
    const VarInfo *d = solver_var(p->s, *v);
    if (d->hi - d->lo > 1) tighten(p, *v);
    d = solver_var(p->s, *v);
    p->wide += d->hi - d->lo > 1 && d->kind == VAR_DEF && d->nlin + d->ntable > 1;
    return x->absum == 0 || margin(p, M_SUM, 0x1p24 * x->unit / x->absum, name, x->ch, x->line);
}

bool sum_residual(Prover *p, uint32_t ch, Var v, const char *name, uint32_t line)
{
    double limit = p->bf16 ? 0x1p8 : 0x1p24, most = 0;
    int64_t lo = solver_var(p->s, v)->lo, hi = solver_var(p->s, v)->hi, olo = chan_lo(p, ch), ohi = chan_hi(p, ch);
    int64_t ends[4] = {lo, hi, lo - ohi, hi - olo}; /* the new value, and what is added */
    for (int i = 0; i < 4; i++) most = fabs((double)ends[i]) > most ? fabs((double)ends[i]) : most;
    return most == 0 || margin(p, M_ROUND, (limit + 1) / most, name, ch, line); /* every integer up to the limit is a number */
}

void sum_free(Sum *x)
{
    for (uint32_t i = 0; i < x->table.n; i++) free(x->table.data[i].t);
    free(x->table.data), free(x->lin.data), free(x->slot), free(x->add.data), free(x->cores.data);
}
