/* slice_form.c: affine forms over channels, and channels as sums of contributions. */
#include "slice.h"
#include <stdlib.h>

bool whole(double v, int64_t *out)
{
    const double tolerance = 1e-3; /* what is left of a channel's band; the proof's bands are far narrower */
    if (!(fabs(v) < 1e15)) return false;
    *out = (int64_t)llrint(v);
    return fabs(v - (double)*out) < tolerance;
}

bool is_bit(const Int *x) { return x->lo == 0 && x->hi <= 1; }

double form_unit(const Entry *e, uint32_t n)
{
    int least = 1000;
    for (uint32_t i = 0; i < n; i++) {
        int exp;
        int64_t mantissa = (int64_t)ldexp(frexp(fabs((double)e[i].w), &exp), 24);
        if (mantissa == 0) continue;
        exp += __builtin_ctzll((uint64_t)mantissa) - 24;
        if (exp < least) least = exp;
    }
    return ldexp(1, least == 1000 ? 0 : least);
}

static bool too_wide(double w, double unit) { return fabs(w / unit) > 1e12; }

/* The index is a sum in common units. */
static bool summed(Block *k, Int **x, const Entry *e, uint32_t n, double bias, Table *out)
{
    double unit = form_unit(e, n);
    VEC(Term) term = {0};
    int64_t constant = 0;
    Int sum;
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i++) {
        const Int *c = channel_int(x, e[i].at);
        if (too_wide(e[i].w, unit)) ok = false;
        int64_t w = ok ? (int64_t)((double)e[i].w / unit) : 0;
        constant += w * c->lo;
        for (uint32_t p = 0; p < c->n; p++) vec_push(&term, ((Term){c->plane[p], w * (1ll << p)}));
    }
    ok = ok && bits_sum(k->g, term.data, term.n, constant, &sum) && sum.hi - sum.lo < MAX_SUM;
    out->nterms = ok ? term.n : 0;
    out->term = pool_array(k->pool, out->nterms, sizeof *out->term);
    if (out->nterms) memcpy(out->term, term.data, term.n * sizeof *term.data);
    free(term.data);
    if (!ok) return false;
    out->n = sum.n;
    out->summed = true;
    out->size = (uint32_t)(sum.hi - sum.lo + 1);
    memcpy(out->in, sum.plane, sum.n * sizeof *sum.plane);
    out->value = pool_array(k->pool, out->size, sizeof *out->value);
    for (uint32_t i = 0; i < out->size; i++) out->value[i] = bias + unit * (double)(sum.lo + i);
    return true;
}

/* The index is the planes themselves. */
static bool direct(Block *k, Int **x, const Entry *e, uint32_t n, double bias, Table *out)
{
    double w[MAX_DIRECT];
    out->n = out->nterms = 0;
    out->summed = false;
    for (uint32_t i = 0; i < n; i++) {
        const Int *c = channel_int(x, e[i].at);
        bias += (double)e[i].w * (double)c->lo;
        for (uint32_t p = 0; p < c->n; p++) {
            if (out->n == MAX_DIRECT) return false;
            w[out->n] = (double)e[i].w * (double)(1ll << p);
            out->in[out->n++] = c->plane[p];
        }
    }
    out->size = 1u << out->n;
    out->value = pool_array(k->pool, out->size, sizeof *out->value);
    for (uint32_t i = 0; i < out->size; i++) {
        out->value[i] = bias;
        for (uint32_t p = 0; p < out->n; p++) out->value[i] += i >> p & 1 ? w[p] : 0;
    }
    return true;
}

bool form_table(Block *k, Int **x, const Entry *e, uint32_t n, double bias, Table *out)
{
    return summed(k, x, e, n, bias, out) || direct(k, x, e, n, bias, out);
}

/* All terms add what they can, or `least`: take away what they can. */
static Ref extreme(Block *k, const Table *t, bool least)
{
    Ref all = TRUE_REF;
    for (uint32_t i = 0; i < t->nterms; i++)
        if (t->term[i].plane > TRUE_REF && t->term[i].w != 0) all = bits_and(k->g, all, t->term[i].plane ^ ((t->term[i].w < 0) != least));
    return all;
}

/* A sum that is told from all others only at one of its ends is an AND, and nothing need be added. */
Ref table_plane(Block *k, const Table *t, const uint8_t *bit)
{
    uint32_t ones = 0, last = t->size - 1;
    for (uint32_t i = 0; i < t->size; i++) ones += bit[i];
    bool flip = ones > 1;
    if (!t->summed || t->size < 2 || (ones != 1 && ones != last) || bit[0] == bit[last]) return bits_table(k->g, t->in, t->n, bit, t->size);
    return extreme(k, t, bit[0] != flip) ^ flip;
}

/* ---- contributions that exclude each other ---- */
enum { LITERALS = 4 }; /* 64-bit words: so many different channels are told apart */
typedef struct {
    uint64_t pos[LITERALS], neg[LITERALS];
} Cube;

static uint32_t local_number(uint32_t *seen, uint32_t *n, uint32_t channel)
{
    for (uint32_t i = 0; i < *n; i++)
        if (seen[i] == channel) return i;
    if (*n == LITERALS * 64) return UINT32_MAX;
    seen[*n] = channel;
    return (*n)++;
}

static void make_cube(const Part *p, uint32_t *seen, uint32_t *n, Cube *c)
{
    for (uint32_t i = 0; i < p->literals; i++) {
        const Entry *e = &p->literal[i];
        uint32_t at = local_number(seen, n, e->at);
        if (at == UINT32_MAX) continue;
        (e->w > 0 ? c->pos : c->neg)[at / 64] |= 1ull << (at & 63);
    }
}

static bool exclusive(const Cube *a, const Cube *b)
{
    uint64_t clash = 0;
    for (int i = 0; i < LITERALS; i++) clash |= (a->pos[i] & b->neg[i]) | (a->neg[i] & b->pos[i]);
    return clash != 0;
}

/* group[i]: parts of one group exclude each other. Returns how many groups. */
static uint32_t find_groups(const Sum *s, uint32_t *group)
{
    uint32_t seen[LITERALS * 64], nseen = 0, groups = 0, n = s->part.n;
    Cube *cube = calloc(n + 1, sizeof *cube);
    if (!cube) die("out of memory");
    for (uint32_t i = 0; i < n; i++) {
        make_cube(&s->part.data[i], seen, &nseen, &cube[i]);
        uint32_t g = 0;
        for (bool fits = false; g < groups; g++) {
            fits = true;
            for (uint32_t j = 0; j < i && fits; j++) fits = group[j] != g || exclusive(&cube[i], &cube[j]);
            if (fits) break;
        }
        group[i] = g;
        if (g == groups) groups++;
    }
    free(cube);
    return groups;
}

/* ---- sums that are a bit ---- */
/* Every term is a bit that adds 1 or takes 1 away. */
static bool all_bits(const Sum *s)
{
    if (s->constant != 0) return false;
    for (uint32_t i = 0; i < s->term.n; i++)
        if (s->term.data[i].w != 1 && s->term.data[i].w != -1) return false;
    return s->part.n > 0;
}

static bool takes_away(const Sum *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->term.n; i++) any |= s->term.data[i].w < 0;
    return any;
}

/* A term of such a sum: its part's group. */
typedef struct {
    Ref plane;
    uint32_t part, group;
} BitTerm;
typedef struct {
    uint32_t n;
    BitTerm *term;
} BitTerms;

static BitTerms terms_of(Block *k, const Sum *s, int64_t w, const uint32_t *group)
{
    BitTerms t = {0, pool_array(k->pool, s->term.n, sizeof *t.term)};
    for (uint32_t i = 0; i < s->part.n; i++)
        for (uint32_t e = s->part.data[i].first; e < s->part.data[i].end; e++)
            if (s->term.data[e].w == w) t.term[t.n++] = (BitTerm){s->term.data[e].plane, i, group[i]};
    return t;
}

/* Their OR; *both: where two may be 1, of different groups or of one part. */
static Ref join_terms(Block *k, const BitTerms *t, uint32_t groups, Ref *both)
{
    Ref any = FALSE_REF;
    for (uint32_t g = 0; g < groups; g++) {
        Ref mine = FALSE_REF;
        uint32_t last = UINT32_MAX;
        for (uint32_t i = 0; i < t->n; i++) {
            if (t->term[i].group != g) continue;
            if (t->term[i].part == last) *both = bits_or(k->g, *both, bits_and(k->g, mine, t->term[i].plane));
            mine = bits_or(k->g, mine, t->term[i].plane);
            last = t->term[i].part;
        }
        *both = bits_or(k->g, *both, bits_and(k->g, any, mine));
        any = bits_or(k->g, any, mine);
    }
    return any;
}

enum { FACTORS = 48 };
/* The planes whose AND it is; more than FACTORS: the first of them, and FACTORS + 1. */
static uint32_t factors(const Bits *g, Ref r, Ref *out, uint32_t n)
{
    const Node *x = &g->node.data[r >> 1];
    if (n > FACTORS) return n;
    if ((r & 1) || x->op != NODE_AND) {
        if (n < FACTORS) out[n] = r;
        return n + 1;
    }
    n = factors(g, x->a, out, n);
    return factors(g, x->b, out, n);
}

static bool among(const Ref *list, uint32_t n, Ref r)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == r) return true;
    return false;
}

/* x is 1 only where y is, as their factors say. */
static bool implies(const Bits *g, Ref x, Ref y)
{
    Ref mine[FACTORS], its[FACTORS];
    uint32_t n = factors(g, x, mine, 0), m = factors(g, y, its, 0);
    if (n > FACTORS || m > n) return false;
    for (uint32_t i = 0; i < m; i++)
        if (!among(mine, n, its[i])) return false;
    return true;
}

/* Exceptions: a term that takes away goes with a term that is 1 wherever it is, p - n = p & ~n. Those that go with none are left. */
static void take_exceptions(Block *k, BitTerms *plus, BitTerms *minus, uint32_t groups, Ref *bad)
{
    uint32_t left = 0, *of = pool_array(k->pool, minus->n, sizeof *of);
    BitTerms gone = {0, pool_array(k->pool, minus->n, sizeof *gone.term)};
    for (uint32_t i = 0; i < minus->n; i++)
        for (of[i] = 0; of[i] < plus->n && !implies(k->g, minus->term[i].plane, plus->term[of[i]].plane); of[i]++) {}
    for (uint32_t p = 0; p < plus->n; p++) {
        gone.n = 0;
        for (uint32_t i = 0; i < minus->n; i++)
            if (of[i] == p) gone.term[gone.n++] = minus->term[i];
        plus->term[p].plane = bits_and(k->g, plus->term[p].plane, bits_not(join_terms(k, &gone, groups, bad)));
    }
    for (uint32_t i = 0; i < minus->n; i++)
        if (of[i] == plus->n) minus->term[left++] = minus->term[i];
    minus->n = left;
}

/* The sum, taken to be 0 or 1 because at most one term of each sign is 1 and none takes away what is not there: a few ORs instead of adders. *bad: where
 * that is not so. Without terms that take away that is just where the sum is neither. */
static Ref join_bits(Block *k, const Sum *s, Ref *bad)
{
    uint32_t *group = xrealloc(NULL, (s->part.n + 1) * sizeof *group), groups = find_groups(s, group);
    BitTerms plus = terms_of(k, s, 1, group), minus = terms_of(k, s, -1, group);
    *bad = FALSE_REF;
    take_exceptions(k, &plus, &minus, groups, bad);
    Ref any = join_terms(k, &plus, groups, bad), none = join_terms(k, &minus, groups, bad);
    *bad = bits_or(k->g, *bad, bits_and(k->g, none, bits_not(any)));
    free(group);
    return bits_and(k->g, any, bits_not(none));
}

/* Every term that adds is an exception to one that takes away: the sum is 0 or -1. */
static bool all_exceptions(Block *k, const Sum *s)
{
    enum { MOST_TERMS = 64 };
    if (s->term.n > MOST_TERMS) return false;
    for (uint32_t i = 0; i < s->term.n; i++) {
        bool found = s->term.data[i].w < 0;
        for (uint32_t j = 0; j < s->term.n && !found; j++) found = s->term.data[j].w < 0 && implies(k->g, s->term.data[i].plane, s->term.data[j].plane);
        if (!found) return false;
    }
    return true;
}

Ref one_of(Block *k, const Ref *bit, uint32_t n, const char *why)
{
    Ref any = FALSE_REF, both = FALSE_REF;
    for (uint32_t i = 0; i < n; i++) {
        both = bits_or(k->g, both, bits_and(k->g, any, bit[i]));
        any = bits_or(k->g, any, bit[i]);
    }
    if (both != FALSE_REF) vec_push(&k->check, ((CheckNode){both, CHECK_FATAL, 0, why}));
    return any;
}

/* ---- ranges ---- */
/* The part excludes all that may add something: it takes away where there is nothing. */
static bool stands_alone(const Sum *s, const Part *p)
{
    uint32_t seen[LITERALS * 64], n = 0;
    Cube mine = {0};
    make_cube(p, seen, &n, &mine);
    for (uint32_t i = 0; i < s->part.n; i++) {
        Cube its = {0};
        if (s->part.data[i].hi <= 0) continue;
        make_cube(&s->part.data[i], seen, &n, &its);
        if (!exclusive(&mine, &its)) return false;
    }
    return true;
}

/* One part at a time leaves its rest value, which is 0 where it can be. `steady`: parts that may take away are corrections to the others (a carry
 * into a digit, an exception to a condition), which stay in their range, unless they stand alone. */
static void hull(const Sum *s, bool steady, int64_t *lo, int64_t *hi)
{
    int64_t rest = s->constant, down = 0, up = 0;
    for (uint32_t i = 0; i < s->part.n; i++) {
        const Part *p = &s->part.data[i];
        int64_t r = p->lo > 0 ? p->lo : p->hi < 0 ? p->hi : 0;
        rest += r - p->offset;
        if (steady && p->lo < 0 && !(p->literals && stands_alone(s, p))) continue;
        if (p->lo - r < down) down = p->lo - r;
        if (p->hi - r > up) up = p->hi - r;
    }
    *lo = rest + down;
    *hi = rest + up;
}

static void assume(const Sum *s, const Int *old, uint8_t level, int64_t *lo, int64_t *hi)
{
    int64_t least = s->constant, most = s->constant;
    for (uint32_t i = 0; i < s->part.n; i++) least += s->part.data[i].lo - s->part.data[i].offset, most += s->part.data[i].hi - s->part.data[i].offset;
    *lo = least, *hi = most;
    if (level >= WIDEST - 1) return;
    if (level == 0 && old && old->hi > old->lo) *lo = old->lo, *hi = old->hi;
    else {
        bool steady = false;
        for (uint32_t i = 0; i < s->part.n; i++) steady |= s->part.data[i].lo >= 0 && s->part.data[i].hi > 0;
        hull(s, steady && level == 0, lo, hi);
    }
    if (*lo < least) *lo = least;
    if (*hi > most) *hi = most;
    if (*hi < *lo) *lo = least, *hi = most;
}

/* What is assumed of a sum at a level. */
typedef struct {
    int64_t lo, hi;
    bool joined, strict; /* strict: what join_bits takes for granted is more than the range */
} Assumed;

/* What join_bits takes for granted comes first, where it can be more than a range; then the range. */
static Assumed assumed(const Sum *s, const Int *old, uint8_t level)
{
    bool bits = all_bits(s), strict = bits && takes_away(s);
    Assumed a = {0};
    assume(s, old, strict && level ? level - 1 : level, &a.lo, &a.hi);
    a.joined = a.lo == 0 && a.hi == 1 && bits && (!strict || level == 0);
    a.strict = a.joined && strict;
    return a;
}

/* The next level at which something else is assumed. */
static uint8_t next_level(const Sum *s, const Int *old, uint8_t level)
{
    Assumed now = assumed(s, old, level), next;
    do next = assumed(s, old, ++level);
    while (level < WIDEST && next.lo == now.lo && next.hi == now.hi && next.joined == now.joined);
    return level;
}

static void add_check(Block *k, Ref bad, uint32_t channel, uint8_t next)
{
    if (bad != FALSE_REF) vec_push(&k->check, ((CheckNode){bad, next > WIDEST ? CHECK_FATAL : channel, next, "a channel left its widest range"}));
}

/* Planes that are never 1, as the nodes themselves say (a + b - 2 ab), narrow the range. */
static void narrow(Int *x)
{
    while (x->n && x->plane[x->n - 1] == FALSE_REF) x->n--;
    if (x->hi - x->lo >= 1ll << x->n) x->hi = x->lo + (1ll << x->n) - 1;
}

static Int *negative_bit(Block *k, Sum *s, uint32_t channel)
{
    Int *x = pool_alloc(k->pool, sizeof *x);
    Ref bad;
    for (uint32_t i = 0; i < s->term.n; i++) s->term.data[i].w = -s->term.data[i].w;
    *x = (Int){.lo = -1, .n = 1, .plane = {bits_not(join_bits(k, s, &bad))}};
    add_check(k, bad, channel, 1);
    return x;
}

Int *sum_channel(Block *k, Sum *s, const Int *old, uint32_t channel, uint8_t level)
{
    int64_t least = s->constant, most = s->constant;
    Int *x = pool_alloc(k->pool, sizeof *x);
    level &= LEVEL_RANGE;
    if (level == 0 && !old && all_bits(s) && takes_away(s) && all_exceptions(k, s)) return negative_bit(k, s, channel);
    Assumed a = assumed(s, old, level);
    int64_t lo = a.lo, hi = a.hi;
    uint8_t next = next_level(s, old, level);
    for (uint32_t i = 0; i < s->part.n; i++) least += s->part.data[i].lo - s->part.data[i].offset, most += s->part.data[i].hi - s->part.data[i].offset;
    *x = (Int){.lo = lo, .n = bits_width((uint64_t)(hi - lo))};
    x->hi = most - lo < (1ll << x->n) ? most : lo + (1ll << x->n) - 1;
    if (a.joined) {
        Ref bad;
        x->plane[0] = join_bits(k, s, &bad);
        if (most > 1 || a.strict) add_check(k, bad, channel, next);
        return x;
    }
    /* wide enough that a value below lo shows in the planes above x's own */
    uint32_t width = bits_width((uint64_t)(most > lo ? most - lo : 0)), below = bits_width((uint64_t)(lo > least ? lo - least : 0));
    if (width < below) width = below;
    if (width < x->n) width = x->n;
    width += below > 0;
    if (width > MAX_PLANES) return NULL;
    Ref plane[MAX_PLANES], bad = FALSE_REF;
    bits_add(k->g, s->term.data, s->term.n, s->constant - lo, width, plane);
    memcpy(x->plane, plane, x->n * sizeof *plane);
    if (least < lo || most > x->hi)
        for (uint32_t i = x->n; i < width; i++) bad = bits_or(k->g, bad, plane[i]);
    add_check(k, bad, channel, next);
    narrow(x);
    return x;
}
