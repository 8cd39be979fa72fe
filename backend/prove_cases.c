/* prove_cases.c: questions by cases: all values of a cut below the question, a block at a time.
 *
 * A search goes wrong where sums meet: bounds say little about the difference of two counts of the same bits. When few variables decide
 * about all of it, every combination of their values is tried. The cut starts at the question's variables and sinks, the highest first, as
 * long as the combinations stay few; a variable of the cut counts as free in its proved range, which is sound. Combinations that
 * something proved rules out are left out. Kinds of tokens are one variable: one of them is 1. */
#include "prove_solver.h"
#include <stdlib.h>

enum { BLOCK = 512, MAX_CASES = 1 << 18, MAX_INNER = 600 };
#define MAX_WORK 0x1p26   /* cases times parts, of one question */
#define ALL_WORK 0x1p29   /* of all */

typedef struct {
    Solver *s;
    VEC(Var) cut, inner;  /* inner: highest first until `order` turns it */
    double cases, parts;
    uint32_t nhot;        /* kinds in the cut */
    int32_t (*value)[BLOCK]; /* by slot */
    bool ok[BLOCK];
} Cases;

/* seen[v]: 1 + slot while v is in the cut or inner, any number but 0 before there are slots. */
static bool in(const Cases *c, Var v) { return c->s->seen[v] != 0; }
static bool is_hot(const Solver *s, Var v) { return v - s->hot < s->nhot; }

static void cut_at(Cases *c, Var v)
{
    if (v == NO_VAR || in(c, v)) return;
    const VarInfo *x = &c->s->v.data[v];
    c->s->seen[v] = 1;
    if (!is_hot(c->s, v)) c->cases *= (double)x->hi - x->lo + 1;
    else c->cases *= (c->nhot + 2.0) / (c->nhot + 1), c->nhot++; /* one of them, or none */
    vec_push(&c->cut, v);
}

/* ---- the cut ---- */

/* What a read gives: its condition aside it is anything. */
static bool is_read(const Solver *s, const VarInfo *x)
{
    return !x->nlin && !x->k && x->ntable == 1 && x->table->s == NO_VAR && x->table->m != NO_VAR && s->v.data[x->table->m].kind == VAR_FREE;
}

static void cut_at_parts(Cases *c, Var v)
{
    const VarInfo x = c->s->v.data[v];
    for (uint32_t i = 0; i < x.nlin; i++) cut_at(c, x.lin[i].v);
    for (uint32_t i = 0; i < x.ntable; i++) cut_at(c, x.table[i].s), cut_at(c, x.table[i].g), cut_at(c, x.table[i].m);
    c->parts += x.nlin + 3.0 * x.ntable + 2;
}

/* The cut sinks below its variable i, if that leaves at most `most` cases. Parts are older than what they make up. */
static bool sink(Cases *c, uint32_t i, double most)
{
    Var v = c->cut.data[i];
    const VarInfo x = c->s->v.data[v];
    double cases = c->cases, parts = c->parts;
    uint32_t n = c->cut.n, nhot = c->nhot;
    c->cases /= (double)x.hi - x.lo + 1;
    cut_at_parts(c, v);
    if (c->cases <= most) {
        vec_push(&c->inner, v);
        c->cut.data[i] = c->cut.data[--c->cut.n];
        return true;
    }
    for (uint32_t k = n; k < c->cut.n; k++) c->s->seen[c->cut.data[k]] = 0;
    c->cut.n = n, c->nhot = nhot, c->cases = cases, c->parts = parts;
    return false;
}

/* The newest first: nothing that has sunk is met again. */
static void lower(Cases *c, double most)
{
    for (Var below = NO_VAR; c->inner.n < MAX_INNER;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < c->cut.n; i++) {
            Var v = c->cut.data[i];
            const VarInfo *x = &c->s->v.data[v];
            if (v >= below || x->kind == VAR_FREE || (x->kind == VAR_DEF && is_read(c->s, x))) continue;
            if (best == UINT32_MAX || v > c->cut.data[best]) best = i;
        }
        if (best == UINT32_MAX) return;
        below = c->cut.data[best];
        sink(c, best, most);
    }
}

static void clear(Cases *c)
{
    for (uint32_t i = 0; i < c->cut.n; i++) c->s->seen[c->cut.data[i]] = 0;
    for (uint32_t i = 0; i < c->inner.n; i++) c->s->seen[c->inner.data[i]] = 0;
    c->cut.n = c->inner.n = c->nhot = 0, c->cases = 1, c->parts = 0;
}

static void make_cut(Cases *c, const Bound *b, uint32_t n, double most)
{
    clear(c);
    for (uint32_t i = 0; i < n; i++) cut_at(c, b[i].v);
    lower(c, most);
}

/* ---- values ---- */
static int32_t *of(const Cases *c, Var v) { return c->value[c->s->seen[v] - 1]; }

/* Cases `first` and on of the cut's variables. */
static void enumerate(Cases *c, uint64_t first)
{
    uint64_t stride = 1, hots = c->nhot == c->s->nhot ? c->nhot : c->nhot + 1;
    uint32_t hot = 0;
    for (int k = 0; k < BLOCK; k++) c->ok[k] = true;
    for (uint32_t i = 0; i < c->cut.n; i++) {
        int32_t *out = of(c, c->cut.data[i]);
        if (is_hot(c->s, c->cut.data[i])) {
            for (int k = 0; k < BLOCK; k++) out[k] = (first + (uint64_t)k) % hots == hot;
            hot++;
        }
    }
    if (hot) stride = hots;
    for (uint32_t i = 0; i < c->cut.n; i++) {
        const VarInfo *x = &c->s->v.data[c->cut.data[i]];
        uint64_t n = (uint64_t)((int64_t)x->hi - x->lo + 1);
        int32_t *out = of(c, c->cut.data[i]);
        if (is_hot(c->s, c->cut.data[i])) continue;
        for (int k = 0; k < BLOCK; k++) out[k] = x->lo + (int32_t)((first + (uint64_t)k) / stride % n);
        stride *= n;
    }
}

static void add_lin(const Cases *c, const VarTerm *t, uint32_t n, int32_t *sum)
{
    for (uint32_t i = 0; i < n; i++) {
        const int32_t *x = of(c, t[i].v);
        for (int k = 0; k < BLOCK; k++) sum[k] += t[i].c * x[k];
    }
}

static void add_table(const Cases *c, const Table *t, int32_t *sum)
{
    int32_t term[BLOCK];
    for (int k = 0; k < BLOCK; k++) term[k] = t->t[0];
    if (t->s != NO_VAR) {
        const int32_t *x = of(c, t->s);
        for (int k = 0; k < BLOCK; k++) term[k] = x[k] >= t->s0 && x[k] - t->s0 < t->n ? t->t[x[k] - t->s0] : 0; /* outside: ruled out by x's range */
    }
    if (t->m != NO_VAR) {
        const int32_t *m = of(c, t->m);
        for (int k = 0; k < BLOCK; k++) term[k] *= m[k] + t->mk;
    }
    if (t->g != NO_VAR) {
        const int32_t *g = of(c, t->g);
        for (int k = 0; k < BLOCK; k++) term[k] = g[k] >= t->gtop ? term[k] : 0;
    }
    for (int k = 0; k < BLOCK; k++) sum[k] += term[k];
}

static void within(Cases *c, const int32_t *x, int32_t lo, int32_t hi)
{
    for (int k = 0; k < BLOCK; k++) c->ok[k] &= (x[k] >= lo) & (x[k] <= hi);
}

/* What is known about forms of v and other variables that are all here. */
static void known_forms(Cases *c, Var v)
{
    for (uint32_t i = c->s->v.data[v].side; i; i = c->s->sides.data[i - 1].next) {
        const VarInfo *x = &c->s->v.data[c->s->sides.data[i - 1].form];
        int32_t sum[BLOCK] = {0};
        bool all = x->kind == VAR_LIN;
        for (uint32_t k = 0; all && k < x->nlin; k++) all = in(c, x->lin[k].v);
        if (!all) continue;
        add_lin(c, x->lin, x->nlin, sum);
        within(c, sum, x->lo, x->hi);
    }
}

static void evaluate(Cases *c)
{
    for (uint32_t i = 0; i < c->cut.n; i++) known_forms(c, c->cut.data[i]);
    for (uint32_t i = c->inner.n; i-- > 0;) { /* the oldest first */
        Var v = c->inner.data[i];
        const VarInfo x = c->s->v.data[v];
        int32_t *out = of(c, v);
        for (int k = 0; k < BLOCK; k++) out[k] = x.kind == VAR_DEF ? x.k : 0;
        add_lin(c, x.lin, x.nlin, out);
        for (uint32_t k = 0; k < x.ntable; k++) add_table(c, &x.table[k], out);
        within(c, out, x.lo, x.hi);
        known_forms(c, v);
    }
}

/* True: no case has all the bounds. */
static bool try_all(Cases *c, const Bound *b, uint32_t n)
{
    uint32_t slot = 0;
    for (uint32_t i = 0; i < c->cut.n; i++) c->s->seen[c->cut.data[i]] = ++slot;
    for (uint32_t i = 0; i < c->inner.n; i++) c->s->seen[c->inner.data[i]] = ++slot;
    c->value = xrealloc(NULL, slot * sizeof *c->value + 1);
    bool none = true;
    for (uint64_t first = 0; none && first < (uint64_t)(c->cases + 0.5); first += BLOCK) {
        enumerate(c, first);
        evaluate(c);
        for (uint32_t i = 0; i < n; i++) within(c, of(c, b[i].v), b[i].lo, b[i].hi);
        for (int k = 0; k < BLOCK; k++) none &= !c->ok[k];
        c->s->work += BLOCK * c->parts;
    }
    free(c->value);
    return none;
}

bool cases_impossible(Solver *s, const Bound *b, uint32_t n)
{
    Cases c = {.s = s};
    bool none = false;
    static const double most[2] = {0x1p60, MAX_CASES};
    for (int i = 0; !none && i < 2 && s->work < ALL_WORK; i++) {
        make_cut(&c, b, n, most[i]);
        if (c.cases <= MAX_CASES && c.cases * c.parts <= MAX_WORK) none = try_all(&c, b, n);
    }
    clear(&c);
    free(c.cut.data), free(c.inner.data);
    return none;
}
