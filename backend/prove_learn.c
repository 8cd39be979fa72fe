/* prove_learn.c: facts about pairs of bits, and proofs of ranges that rest on them.
 *
 * A sum of gates of which at most one is on is a bit. That is shown pair by pair: two gates that ask for opposite values of a bit, or for
 * bits that exclude each other; those facts come from deeper down, are found when they are missed, and are kept as linear forms with a
 * bound, so that later searches have them. What no pair shows is left to a search, which learns the facts that it runs into the absence of, and to
 * one over bits. */
#include "prove_solver.h"
#include <stdlib.h>

enum { VAIN = 10000, MAX_LITERALS = 64, MAX_FACTS = 500 };

typedef struct {
    Var v;
    bool high; /* v is at its largest value, else at its least */
} Literal;

static Bound literal_bound(const Solver *s, Literal l)
{
    int32_t x = l.high ? s->v.data[l.v].hi : s->v.data[l.v].lo;
    return (Bound){l.v, x, x};
}

/* ---- facts ---- */
static Fact *find_fact(const Solver *s, uint64_t key)
{
    uint32_t k = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 33) & (s->fact_cap - 1);
    while (s->fact[k].key && s->fact[k].key != key) k = (k + 1) & (s->fact_cap - 1);
    return &s->fact[k];
}

static void grow_facts(Solver *s)
{
    Fact *old = s->fact;
    uint32_t cap = s->fact_cap;
    s->fact_cap = cap ? 2 * cap : 4096;
    s->fact = memset(xrealloc(NULL, s->fact_cap * sizeof *s->fact), 0, s->fact_cap * sizeof *s->fact);
    for (uint32_t i = 0; i < cap; i++)
        if (old[i].key) *find_fact(s, old[i].key) = old[i];
    free(old);
}

static uint64_t pair_key(Literal a, Literal b)
{
    uint64_t ka = 2ull * a.v + a.high, kb = 2ull * b.v + b.high;
    return (ka < kb ? ka << 32 | kb : kb << 32 | ka) + 1;
}

/* a and b never hold together: as a linear form with a bound. */
static void remember(Solver *s, Literal a, Literal b)
{
    if (a.v > b.v) {
        Literal t = a;
        a = b, b = t;
    }
    VarTerm t[2] = {{a.v, a.high ? 1 : -1}, {b.v, b.high ? 1 : -1}};
    int32_t both = t[0].c * literal_bound(s, a).lo + t[1].c * literal_bound(s, b).lo;
    Var f = solver_lin(s, t, 2);
    solver_limit(s, f, INT32_MIN, both - 1);
    solver_side(s, a.v, f, false);
}

static bool opposite(const Solver *s, Literal a, Literal b) { return a.v == b.v && a.high != b.high && s->v.data[a.v].lo < s->v.data[a.v].hi; }

static bool known(const Solver *s, Literal a, Literal b)
{
    if (opposite(s, a, b)) return true;
    const Fact *f = s->fact_cap ? find_fact(s, pair_key(a, b)) : NULL;
    return f && f->key && f->holds;
}

/* Asks, once for every pair and effort. */
static bool exclude(Solver *s, Literal a, Literal b, Effort e)
{
    const VarInfo *x = &s->v.data[a.v], *y = &s->v.data[b.v];
    if (a.v == b.v || x->hi - x->lo != 1 || y->hi - y->lo != 1) return false;
    if (2 * (s->nfacts + 1) > s->fact_cap) grow_facts(s);
    Fact *f = find_fact(s, pair_key(a, b));
    if (f->key && (f->holds || f->effort >= e)) return f->holds;
    s->nfacts += !f->key;
    *f = (Fact){pair_key(a, b), false, e};
    Bound both[2] = {literal_bound(s, a), literal_bound(s, b)};
    uint64_t before = s->nodes;
    if (!search_pair(s, both, e)) {
        if (e == FULL) s->vain += s->nodes - before;
        return false;
    }
    f->holds = true;
    remember(s, a, b);
    return true;
}

static bool exclude_by_bits(Solver *s, Var x, Var y)
{
    Literal a = {x, true}, b = {y, true};
    Bound both[2] = {literal_bound(s, a), literal_bound(s, b)};
    if (sample_shows(s, both, 2) || !encoder_impossible(s->encoder, both, 2)) return false;
    remember(s, a, b);
    return true;
}

bool solver_exclusive(Solver *s, Var x, Var y)
{
    VarTerm t[2] = {{x < y ? x : y, 1}, {x < y ? y : x, 1}};
    Var f = solver_lin(s, t, 2);
    Literal a = {x, true}, b = {y, true};
    return s->v.data[f].hi < s->v.data[x].hi + s->v.data[y].hi || exclude(s, a, b, SHALLOW) || exclude_by_bits(s, x, y) || exclude(s, a, b, FULL);
}

/* ---- pairs of gates ---- */
static uint32_t literals(const Solver *s, Arm a, Literal *out)
{
    const VarInfo *x = &s->v.data[a.g];
    if (x->kind != VAR_LIN) {
        out[0] = (Literal){a.g, true};
        return 1;
    }
    uint32_t n = x->nlin < MAX_LITERALS ? x->nlin : MAX_LITERALS;
    for (uint32_t i = 0; i < n; i++) out[i] = (Literal){x->lin[i].v, x->lin[i].c > 0};
    return n;
}

/* Two gates that are never both on; asks only when nothing is known. */
static bool apart(Solver *s, Arm a, Arm b, Effort e)
{
    Literal x[MAX_LITERALS], y[MAX_LITERALS];
    uint32_t nx = literals(s, a, x), ny = literals(s, b, y);
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t j = 0; j < ny; j++)
            if (known(s, x[i], y[j])) return true;
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t j = 0; j < ny; j++)
            if (exclude(s, x[i], y[j], e)) return true;
    return false;
}

/* The first variables of a definition's guards, and which value each guard asks of them: a bit each. Two guards that ask for opposite ones
 * need no more than a glance. */
typedef struct {
    Arm arm;
    uint64_t high, low;
} Guard;

static uint32_t bit_of(Var *var, uint32_t *n, Var v)
{
    for (uint32_t i = 0; i < *n; i++)
        if (var[i] == v) return i;
    if (*n == 64) return 64;
    var[*n] = v;
    return (*n)++;
}

static Guard *guards_of(Solver *s, const VarInfo *x)
{
    Guard *g = xrealloc(NULL, (x->ntable + 1) * sizeof *g);
    Var var[64];
    uint32_t nvar = 0;
    for (uint32_t i = 0; i < x->ntable; i++) {
        Literal l[MAX_LITERALS];
        g[i] = (Guard){{x->table[i].g, x->table[i].gtop}, 0, 0};
        if (g[i].arm.g == NO_VAR) return free(g), NULL;
        for (uint32_t k = 0, n = literals(s, g[i].arm, l); k < n; k++) {
            uint32_t b = s->v.data[l[k].v].lo < s->v.data[l[k].v].hi ? bit_of(var, &nvar, l[k].v) : 64;
            if (b < 64) *(l[k].high ? &g[i].high : &g[i].low) |= 1ull << b;
        }
    }
    return g;
}

static bool all_apart(Solver *s, const Guard *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!(g[i].high & g[j].low) && !(g[i].low & g[j].high) && !apart(s, g[i].arm, g[j].arm, SHALLOW)) return false;
    return true;
}

/* The same list of guards again: the next bit of a word that a memory reads. */
static bool same_guards(const VarInfo *x, const VarInfo *y)
{
    if (x->ntable != y->ntable) return false;
    for (uint32_t i = 0; i < x->ntable; i++)
        if (x->table[i].g != y->table[i].g || x->table[i].gtop != y->table[i].gtop) return false;
    return true;
}

/* The range of v when at most one of its gates is ever on; false when that is not shown. */
static bool one_at_a_time(Solver *s, Var v, int64_t *lo, int64_t *hi)
{
    const VarInfo x = s->v.data[v];
    int64_t least = 0, most = 0;
    if (s->last_apart == NO_VAR || !same_guards(&s->v.data[s->last_apart], &x)) {
        Guard *g = guards_of(s, &x);
        bool ok = g && all_apart(s, g, x.ntable);
        free(g);
        if (!ok) return false;
        s->last_apart = v;
    }
    *lo = *hi = x.k;
    lin_bounds(s, x.lin, x.nlin, lo, hi);
    for (uint32_t i = 0; i < x.ntable; i++) {
        int64_t a, b;
        term_bounds(s, &x.table[i], &a, &b);
        least = a < least ? a : least, most = b > most ? b : most;
    }
    *lo += least, *hi += most;
    return true;
}

/* ---- groups of gates ---- */
static bool prove_side(Solver *s, Bound b, int sign);

/* group[i]: the first table of those that table i is linked with through pairs that are not shown to exclude each other. Returns how many groups. */
static uint32_t groups_of(Solver *s, const Guard *g, uint32_t n, uint32_t *group)
{
    uint32_t count = n;
    for (uint32_t i = 0; i < n; i++) group[i] = i;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) {
            uint32_t a = group[i], b = group[j];
            if (a == b || (g[i].high & g[j].low) || (g[i].low & g[j].high) || apart(s, g[i].arm, g[j].arm, SHALLOW)) continue;
            for (uint32_t k = 0; k <= i; k++)
                if (group[k] == a || group[k] == b) group[k] = a < b ? a : b;
            count--;
        }
    return count;
}

/* Whether the sum of a group's tables lies between least and most, which 0 does. */
static bool group_within(Solver *s, const Table *t, uint32_t n, int64_t least, int64_t most)
{
    int64_t lo = 0, hi = 0, a, b;
    for (uint32_t i = 0; i < n; i++) term_bounds(s, &t[i], &a, &b), lo += a, hi += b;
    if (lo >= least && hi <= most) return true;
    if (n == 1) return false;
    Var v = solver_def(s, 0, NULL, 0, t, n);
    Bound above = {v, solver_clamp(most + 1), INT32_MAX}, below = {v, INT32_MIN, solver_clamp(least - 1)};
    return (hi <= most || prove_side(s, above, 1)) && (lo >= least || prove_side(s, below, -1));
}

/* Gates of different groups are never on together: v is its affine part and the sum of one group, or of none. True when so it lies between lo and hi. */
static bool one_group_at_a_time(Solver *s, Var v, int32_t lo, int32_t hi)
{
    const VarInfo x = s->v.data[v];
    int64_t least = x.k, most = x.k;
    lin_bounds(s, x.lin, x.nlin, &least, &most);
    if (least < lo || most > hi) return false;
    Guard *g = guards_of(s, &x);
    uint32_t *group = xrealloc(NULL, (x.ntable + 1) * sizeof *group);
    Table *part = xrealloc(NULL, (x.ntable + 1) * sizeof *part);
    bool ok = g && groups_of(s, g, x.ntable, group) > 1;
    for (uint32_t i = 0; ok && i < x.ntable; i++) {
        uint32_t n = 0;
        for (uint32_t k = i; group[i] == i && k < x.ntable; k++)
            if (group[k] == i) part[n++] = x.table[k];
        ok = group_within(s, part, n, lo - least, hi - most);
    }
    free(g), free(group), free(part);
    return ok;
}

/* Facts about the gates that were on together where a search ended. */
static bool learn(Solver *s, Effort e)
{
    bool any = false;
    for (uint32_t i = 0; i < s->arms.n; i++)
        for (uint32_t j = 0; j < i; j++) any |= apart(s, s->arms.data[i], s->arms.data[j], e);
    return any;
}

/* ---- ranges ---- */
/* By facts about gates that were on together where a search ended; then by search alone. `near`: only what costs little. */
static bool by_facts(Solver *s, Bound b, int sign, bool near)
{
    if (s->v.data[b.v].kind == VAR_DEF)
        for (int i = 0; i < MAX_FACTS; i++) {
            s->model_of = b.v, s->model_sign = sign;
            bool r = search_ask(s, &b, 1, 1);
            s->model_of = NO_VAR;
            if (r) return true;
            if (!s->found || !(learn(s, near ? SHALLOW : MODERATE) || (!near && s->vain < VAIN && learn(s, FULL)))) break;
        }
    return near ? search_near(s, &b, 1) : search_impossible(s, &b, 1);
}

/* First by the means that answered last: the bits of a word are alike. What a search over bits finds instead mostly ends the matter. */
static bool prove_side(Solver *s, Bound b, int sign)
{
    if (sample_shows(s, &b, 1)) return false;
    for (int i = 0; i < 2; i++, s->bits_first = !s->bits_first)
        if (s->bits_first ? encoder_impossible(s->encoder, &b, 1) : by_facts(s, b, sign, true)) return true;
    if (s->deep >= DEEP || sample_shows(s, &b, 1)) return false;
    uint64_t before = s->nodes;
    bool r = by_facts(s, b, sign, false);
    s->deep += r ? 0 : s->nodes - before;
    return r;
}

bool solver_prove(Solver *s, Var v, int32_t lo, int32_t hi)
{
    const VarInfo x = s->v.data[v];
    int64_t least, most;
    Bound outside[2] = {{v, INT32_MIN, lo - 1}, {v, hi + 1, INT32_MAX}};
    if (sample_shows(s, &outside[0], 1) || sample_shows(s, &outside[1], 1)) return false;
    if (x.kind == VAR_DEF && one_at_a_time(s, v, &least, &most)) solver_limit(s, v, solver_clamp(least), solver_clamp(most));
    const VarInfo y = s->v.data[v];
    bool open = y.lo < lo || y.hi > hi;
    if (open && x.kind == VAR_DEF && one_group_at_a_time(s, v, lo, hi)) open = false;
    if (open && y.hi > hi && !prove_side(s, (Bound){v, hi + 1, y.hi}, 1)) return false;
    if (open && y.lo < lo && !prove_side(s, (Bound){v, y.lo, lo - 1}, -1)) return false;
    solver_limit(s, v, lo, hi);
    return true;
}

bool solver_fixed(Solver *s, Bound given, Var v, int32_t *value)
{
    const VarInfo x = s->v.data[v];
    if (solver_impossible(s, (Bound[]){given, {v, x.lo + 1, x.hi}}, 2)) *value = x.lo;
    else if (solver_impossible(s, (Bound[]){given, {v, x.lo, x.hi - 1}}, 2)) *value = x.hi;
    else return false;
    return true;
}