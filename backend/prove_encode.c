/* prove_encode.c: definitions as linear constraints over bits, for prove_sat.c. Every variable becomes a sum over bits: a bit of its own where it has two
 * values; else what it is defined by. A condition "form >= b" is a bit that two inequalities tie to the form; a table is a sum of its steps, a product
 * of bits an AND. What would become too large is free in its proved range. */
#include "prove_sat.h"
#include "prove_solver.h"
#include <stdlib.h>

enum { MAX_TERMS = 256, MAX_STEPS = 64, MAX_WIDTH = 12 /* bits of a free integer */, BUDGET = 2000 /* conflicts */ };

/* k + sum of t */
typedef struct {
    enum { UNSEEN, KNOWN, TOO_LARGE } state;
    int64_t k;
    uint32_t n;
    SatTerm *t;
} Poly;
typedef struct {
    uint64_t a, b;     /* a form and its threshold, or two literals; a = 0: free */
    SatLit l;
} Named;

struct Encoder {
    Solver *s;
    Sat *sat;
    SatLit one;        /* true */
    VEC(Poly) poly;    /* per variable */
    Named *named;
    uint32_t cap, nnamed;
    uint32_t nsides;   /* forms known beside variables that are facts already */
};

Encoder *encoder_new(Solver *s)
{
    Encoder *e = pool_alloc(s->pool, sizeof *e);
    *e = (Encoder){.s = s, .sat = sat_new()};
    e->one = sat_bit(e->sat);
    sat_fact(e->sat, &(SatTerm){e->one, 1}, 1, 1, true);
    return e;
}

void encoder_free(Encoder *e)
{
    sat_free(e->sat);
    free(e->poly.data), free(e->named);
}


/* ---- named literals ---- */
static Named *find(const Encoder *e, uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    uint32_t i = (uint32_t)(h >> 32) & (e->cap - 1);
    while (e->named[i].a && (e->named[i].a != a || e->named[i].b != b)) i = (i + 1) & (e->cap - 1);
    return &e->named[i];
}

static Named *name(Encoder *e, uint64_t a, uint64_t b)
{
    if (2 * (e->nnamed + 1) > e->cap) {
        Named *old = e->named;
        uint32_t n = e->cap;
        e->cap = n ? 2 * n : 4096;
        e->named = memset(xrealloc(NULL, e->cap * sizeof *e->named), 0, e->cap * sizeof *e->named);
        for (uint32_t i = 0; i < n; i++)
            if (old[i].a) *find(e, old[i].a, old[i].b) = old[i];
        free(old);
    }
    return find(e, a, b);
}

/* a and b */
static SatLit both(Encoder *e, SatLit a, SatLit b)
{
    if (a == b || b == e->one) return a;
    if (a == e->one) return b;
    if (a == sat_not(b) || a == sat_not(e->one) || b == sat_not(e->one)) return sat_not(e->one);
    Named *x = name(e, 1ull << 63 | (a < b ? a : b), a < b ? b : a);
    if (x->a) return x->l;
    SatLit z = sat_bit(e->sat);
    *x = (Named){1ull << 63 | (a < b ? a : b), a < b ? b : a, z};
    e->nnamed++;
    sat_define(e->sat, z, (SatTerm[]){{a, 1}, {b, 1}, {z, -2}}, 3, 0);
    sat_define(e->sat, z, (SatTerm[]){{sat_not(a), 1}, {sat_not(b), 1}, {z, 1}}, 3, 1);
    return z;
}

static void range(const Poly *p, int64_t *lo, int64_t *hi)
{
    *lo = *hi = p->k;
    for (uint32_t i = 0; i < p->n; i++) *(p->t[i].c < 0 ? lo : hi) += p->t[i].c;
}

/* sum of p >= bound + more * l */
static void demand(Encoder *e, SatLit owner, const Poly *p, int sign, int64_t bound, SatLit l, int64_t more)
{
    SatTerm *t = xrealloc(NULL, (p->n + 1) * sizeof *t);
    for (uint32_t i = 0; i < p->n; i++) t[i] = (SatTerm){p->t[i].l, sign * p->t[i].c};
    t[p->n] = (SatTerm){l, (int32_t)-more};
    sat_define(e->sat, owner, t, p->n + (more != 0), bound - sign * p->k);
    free(t);
}

/* The literal that v, which is p, is at least b. */
static SatLit at_least(Encoder *e, Var v, const Poly *p, int64_t b)
{
    int64_t lo, hi;
    range(p, &lo, &hi);
    if (lo >= b) return e->one;
    if (hi < b) return sat_not(e->one);
    if (p->n == 1) return p->t->c > 0 ? p->t->l : sat_not(p->t->l);
    uint64_t key = (uint64_t)v + 1, at = (uint64_t)(b + (1ll << 40));
    Named *x = name(e, key, at);
    if (x->a) return x->l;
    SatLit y = sat_bit(e->sat);
    *x = (Named){key, at, y};
    e->nnamed++;
    demand(e, y, p, 1, lo, y, b - lo);              /* y: p >= b */
    demand(e, y, p, -1, -hi, sat_not(y), 1 - b + hi); /* not y: p <= b - 1; y: p <= hi */
    return y;
}

/* ---- sums under construction ---- */
typedef struct {
    int64_t k;
    VEC(SatTerm) t;
    bool too_large;
} Draft;

static void put(Draft *d, SatLit l, int64_t c)
{
    if (c > INT32_MAX / 4 || c < -INT32_MAX / 4 || d->t.n >= 4 * MAX_TERMS) d->too_large = true;
    else if (c) vec_push(&d->t, ((SatTerm){l, (int32_t)c}));
}

static void put_lit(const Encoder *e, Draft *d, SatLit l, int64_t c)
{
    if (l == e->one) d->k += c;
    else if (l & 1 && l != sat_not(e->one)) d->k += c, put(d, sat_not(l), -c);
    else if (l != sat_not(e->one)) put(d, l, c);
}

static int by_literal(const void *a, const void *b)
{
    const SatTerm *x = a, *y = b;
    return x->l < y->l ? -1 : x->l > y->l;
}

static Poly finish(Encoder *e, Draft *d)
{
    Poly p = {.state = KNOWN, .k = d->k};
    uint32_t k = 0;
    if (d->t.n) qsort(d->t.data, d->t.n, sizeof *d->t.data, by_literal);
    for (uint32_t i = 0; i < d->t.n; i++) {
        if (k && d->t.data[k - 1].l == d->t.data[i].l) d->t.data[k - 1].c += d->t.data[i].c;
        else d->t.data[k++] = d->t.data[i];
    }
    for (uint32_t i = 0; i < k; i++)
        if (d->t.data[i].c) d->t.data[p.n++] = d->t.data[i];
    double sum = 0;
    for (uint32_t i = 0; i < p.n; i++) sum += abs(d->t.data[i].c);
    if (d->too_large || p.n > MAX_TERMS || sum >= 0x1p29) p.state = TOO_LARGE;
    else p.t = pool_array(e->s->pool, p.n + 1, sizeof *p.t);
    if (p.t && p.n) memcpy(p.t, d->t.data, p.n * sizeof *p.t);
    free(d->t.data);
    return p;
}

/* ---- variables ---- */
static const Poly *encode(Encoder *e, Var v);

static void put_var(Encoder *e, Draft *d, Var v, int64_t c)
{
    const Poly *p = encode(e, v);
    if (p->state == TOO_LARGE) d->too_large = true;
    if (d->too_large) return;
    d->k += c * p->k;
    for (uint32_t i = 0; i < p->n; i++) put(d, p->t[i].l, c * p->t[i].c);
}

/* c * [on] * (m + mk) */
static void put_factor(Encoder *e, Draft *d, SatLit on, const Table *t, int64_t c)
{
    if (t->m == NO_VAR) {
        put_lit(e, d, on, c);
        return;
    }
    const Poly *m = encode(e, t->m);
    if (m->state == TOO_LARGE || m->n > MAX_STEPS) {
        d->too_large = true;
        return;
    }
    put_lit(e, d, on, c * (m->k + t->mk));
    for (uint32_t i = 0; i < m->n; i++) put_lit(e, d, both(e, on, m->t[i].l), c * m->t[i].c);
}

static void put_table(Encoder *e, Draft *d, const Table *t)
{
    SatLit on = e->one;
    if (t->g != NO_VAR) {
        const Poly *g = encode(e, t->g);
        if (g->state == TOO_LARGE) d->too_large = true;
        else on = at_least(e, t->g, g, t->gtop);
    }
    const Poly *x = t->s == NO_VAR ? NULL : encode(e, t->s);
    uint32_t steps = 0;
    for (int32_t i = 1; x && i < t->n; i++) steps += t->t[i] != t->t[i - 1];
    if (steps > MAX_STEPS || (x && x->state == TOO_LARGE)) d->too_large = true;
    if (d->too_large) return;
    put_factor(e, d, on, t, t->t[0]);
    for (int32_t i = 1; x && i < t->n && !d->too_large; i++)
        if (t->t[i] != t->t[i - 1]) put_factor(e, d, both(e, on, at_least(e, t->s, x, (int64_t)t->s0 + i)), t, (int64_t)t->t[i] - t->t[i - 1]);
}

/* Any integer from lo to hi. */
static Poly free_integer(Encoder *e, int64_t lo, int64_t hi)
{
    Draft d = {.k = lo};
    unsigned n = clog2((uint64_t)(hi - lo) + 1);
    if (n > MAX_WIDTH) return (Poly){.state = TOO_LARGE};
    for (unsigned i = 0; i < n; i++) put(&d, sat_bit(e->sat), 1ll << i);
    if (hi - lo < (1ll << n) - 1) {
        SatTerm t[MAX_WIDTH];
        for (unsigned i = 0; i < n; i++) t[i] = (SatTerm){d.t.data[i].l, -d.t.data[i].c};
        sat_fact(e->sat, t, n, lo - hi, true);
    }
    return finish(e, &d);
}

/* A bit for what has two values. */
static Poly as_bit(Encoder *e, const Poly *p, int64_t lo)
{
    if (p->n == 1 && p->t->c == 1 && p->k == lo) return *p;
    if (p->n == 1 && p->t->c == -1 && p->k == lo + 1) return *p;
    SatLit b = sat_bit(e->sat);
    demand(e, b, p, 1, lo, b, 1); /* p >= lo + b */
    demand(e, b, p, -1, -lo - 1, sat_not(b), 1); /* p <= lo + b */
    Draft d = {.k = lo};
    put(&d, b, 1);
    return finish(e, &d);
}

static Poly encode_new(Encoder *e, Var v)
{
    const VarInfo x = e->s->v.data[v];
    Draft d = {.k = x.kind == VAR_DEF ? x.k : 0};
    if (x.plo == x.phi) return (Poly){.state = KNOWN, .k = x.plo};
    if (x.kind == VAR_FREE) return free_integer(e, x.plo, x.phi);
    for (uint32_t i = 0; i < x.nlin && !d.too_large; i++) put_var(e, &d, x.lin[i].v, x.lin[i].c);
    for (uint32_t i = 0; i < x.ntable && !d.too_large; i++) put_table(e, &d, &x.table[i]);
    Poly p = finish(e, &d);
    if (p.state == TOO_LARGE) return free_integer(e, x.plo, x.phi);
    return x.phi - x.plo == 1 ? as_bit(e, &p, x.plo) : p;
}

/* A form whose range is known beside it. */
static void put_fact(Encoder *e, Var form)
{
    const VarInfo x = e->s->v.data[form];
    Draft d = {0};
    for (uint32_t i = 0; i < x.nlin; i++) put_var(e, &d, x.lin[i].v, x.lin[i].c);
    Poly p = finish(e, &d);
    if (p.state == TOO_LARGE) return;
    SatTerm *t = xrealloc(NULL, (p.n + 1) * sizeof *t);
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (uint32_t i = 0; i < p.n; i++) t[i] = (SatTerm){p.t[i].l, sign * p.t[i].c};
        sat_fact(e->sat, t, p.n, sign > 0 ? x.plo - p.k : p.k - x.phi, true);
    }
    free(t);
}

static const Poly *encode(Encoder *e, Var v)
{
    Poly *p = &e->poly.data[v];
    const VarInfo *x = &e->s->v.data[v];
    bool bit = (int64_t)x->phi - x->plo <= 1;
    if (p->state == UNSEEN || (bit && (p->n > 1 || p->state == TOO_LARGE))) *p = encode_new(e, v);
    return p;
}

static void prepare(Encoder *e)
{
    while (e->poly.n < e->s->v.n) vec_push(&e->poly, ((Poly){0}));
    for (; e->nsides < e->s->sides.n; e->nsides++)
        if (e->s->sides.data[e->nsides].whole && (!e->nsides || e->s->sides.data[e->nsides - 1].form != e->s->sides.data[e->nsides].form))
            put_fact(e, e->s->sides.data[e->nsides].form);
}

bool encoder_impossible(Encoder *e, const Bound *b, uint32_t n)
{
    static const uint32_t depth[] = {6, UINT32_MAX}; /* most questions need little of what is below them */
    SatLit *l = xrealloc(NULL, (2 * n + 1) * sizeof *l);
    uint32_t k = 0;
    prepare(e);
    for (uint32_t i = 0; i < n; i++) {
        const VarInfo *x = &e->s->v.data[b[i].v];
        const Poly *p = encode(e, b[i].v);
        if (p->state == TOO_LARGE) continue;
        if (b[i].lo > x->plo) l[k++] = at_least(e, b[i].v, p, b[i].lo);
        if (b[i].hi < x->phi) l[k++] = sat_not(at_least(e, b[i].v, p, (int64_t)b[i].hi + 1));
    }
    SatAnswer r = SAT_SPENT;
    for (unsigned i = 0; k && r != SAT_NO && i < sizeof depth / sizeof *depth; i++) r = sat_ask(e->sat, l, k, depth[i], BUDGET);
    free(l);
    if (r == SAT_MAYBE) sample_add(e->s);
    return r == SAT_NO;
}

bool encoder_model(const Encoder *e, Var v, int32_t *value)
{
    const Poly *p = v < e->poly.n ? &e->poly.data[v] : NULL;
    if (!p || p->state != KNOWN) return false;
    int64_t sum = p->k;
    for (uint32_t i = 0; i < p->n; i++) {
        int on = sat_model(e->sat, p->t[i].l);
        if (!on) return false;
        sum += on > 0 ? p->t[i].c : 0;
    }
    *value = solver_clamp(sum);
    return true;
}
