/* fold_logic.c: AND and OR as sets of factors, and what one condition says about another.
 *
 * A value is seen as a conjunction of FACTORS (an op or its complement); OR is the same under De Morgan. A factor of
 * width 1 also states FACTS about bits: `opcode == 0x13` fixes seven bits of the instruction word. From these:
 * contradictions fold to 0, factors that the other side implies are dropped, and NOT(p AND q) beside p becomes NOT q.
 * So path conditions of nested ifs and of decoders stay as short as if they had been written by hand. */
#include "ir.h"

enum {
    FACTORS = 24, /* more are kept whole: knowledge is then partial, never wrong */
    FACTS = 160
};

typedef struct {
    Ref r;
    bool neg;
} Factor;

/* (base & mask) == val. For factors wider than one bit: mask 1, and the fact holds for each bit alike. */
typedef struct {
    Ref base;
    uint64_t mask, val;
} Fact;

typedef struct {
    unsigned n;
    Fact f[FACTS];
} Facts;

/* Appends the factors of r (complemented: of NOT r). Needs n < limit; the result is at most limit. */
static unsigned factors(const Circuit *c, Ref r, bool neg, Factor *out, unsigned n, unsigned limit)
{
    const Op *op = op_at(c, r);
    if (op->kind == OP_NOT) return factors(c, arg_at(c, r, 0), !neg, out, n, limit);
    if (op->kind == (neg ? OP_OR : OP_AND) && n + 2 <= limit) {
        n = factors(c, arg_at(c, r, 0), neg, out, n, limit - 1);
        return factors(c, arg_at(c, r, 1), neg, out, n, limit);
    }
    out[n] = (Factor){r, neg};
    return n + 1;
}

static void fact_add(Facts *s, Ref base, uint64_t mask, uint64_t val)
{
    if (s->n < FACTS) s->f[s->n++] = (Fact){base, mask, val & mask};
}

/* What a == k says about the values that a is wired from. */
static void equal_facts(const Circuit *c, Ref a, uint64_t k, Facts *s)
{
    const Op *op = op_at(c, a);
    switch (op->kind) {
    case OP_CONST: return;
    case OP_NOT: equal_facts(c, arg_at(c, a, 0), ~k, s); return;
    case OP_ZEXT: case OP_SEXT: equal_facts(c, arg_at(c, a, 0), k, s); return;
    case OP_SLICE: fact_add(s, arg_at(c, a, 0), mask64(op->width) << op->imm, k << op->imm); return;
    case OP_CAT:
        for (unsigned i = op->nargs; i-- > 0;) {
            Ref part = arg_at(c, a, i);
            unsigned w = op_at(c, part)->width;
            equal_facts(c, part, k, s);
            k = w < 64 ? k >> w : 0;
        }
        return;
    default: fact_add(s, a, mask64(op->width), k);
    }
}

/* The first fact is the factor itself; a true comparison with a constant adds what it says about bits. */
static void factor_facts(const Circuit *c, Factor x, Facts *s)
{
    const Op *op = op_at(c, x.r);
    uint64_t k;
    if (op->kind == OP_SLICE && op->width == 1) {
        fact_add(s, arg_at(c, x.r, 0), 1ull << op->imm, x.neg ? 0 : ~0ull);
        return;
    }
    fact_add(s, x.r, 1, !x.neg);
    if (!x.neg && op->kind == OP_EQ && ir_is_const(c, arg_at(c, x.r, 1), &k)) equal_facts(c, arg_at(c, x.r, 0), k, s);
}

static void list_facts(const Circuit *c, const Factor *x, unsigned n, Facts *s)
{
    s->n = 0;
    for (unsigned i = 0; i < n; i++) factor_facts(c, x[i], s);
}

static bool conflict(const Facts *a, const Facts *b)
{
    for (unsigned i = 0; i < a->n; i++)
        for (unsigned j = 0; j < b->n; j++)
            if (a->f[i].base == b->f[j].base && (a->f[i].mask & b->f[j].mask & (a->f[i].val ^ b->f[j].val))) return true;
    return false;
}

static bool covered(const Fact *x, const Facts *known)
{
    uint64_t left = x->mask;
    for (unsigned i = 0; i < known->n && left; i++)
        if (known->f[i].base == x->base) left &= ~known->f[i].mask | (known->f[i].val ^ x->val);
    return !left;
}

static bool implied(const Circuit *c, Factor x, const Facts *known)
{
    Facts own = {0};
    factor_facts(c, x, &own);
    if (covered(&own.f[0], known)) return true;
    bool all = own.n > 1;
    for (unsigned i = 1; all && i < own.n; i++) all = covered(&own.f[i], known);
    if (all) return true;
    Factor e[FACTORS]; /* the complement, and whether it is impossible */
    unsigned n = factors(c, x.r, !x.neg, e, 0, FACTORS);
    list_facts(c, e, n, &own);
    return conflict(&own, known);
}

/* The value of a list of factors: their AND, or for `dual` the complement of that, as an OR. */
static Ref build_list(Circuit *c, const Request *q, const Factor *x, unsigned n, bool dual)
{
    unsigned width = op_at(c, q->args[0])->width;
    Ref r = ir_const(c, width, dual ? 0 : ~0ull);
    for (unsigned i = 0; i < n; i++) {
        Ref v = x[i].neg == dual ? x[i].r : ir_op(c, OP_NOT, width, 0, 1, &x[i].r, q->span);
        r = ir_op(c, dual ? OP_OR : OP_AND, width, 0, 2, (Ref[]){r, v}, q->span);
    }
    return r;
}

typedef enum { KEPT, CHANGED, NEVER } Change;

/* NOT(p AND rest) where p is known becomes NOT rest; with nothing left it is false. */
static Change weaken(Circuit *c, const Request *q, Factor *x, const Facts *known)
{
    Factor e[FACTORS];
    unsigned n = factors(c, x->r, !x->neg, e, 0, FACTORS), m = 0;
    if (n < 2) return KEPT;
    for (unsigned i = 0; i < n; i++)
        if (!implied(c, e[i], known)) e[m++] = e[i];
    if (m == n) return KEPT;
    if (m == 0) return NEVER;
    *x = m == 1 ? (Factor){e[0].r, !e[0].neg} : (Factor){build_list(c, q, e, m, false), true};
    return CHANGED;
}

/* Simplifies the factors x[0..*n) under the facts of the other side. */
static Change reduce(Circuit *c, const Request *q, Factor *x, unsigned *n, const Facts *known)
{
    Change result = KEPT;
    unsigned m = 0;
    for (unsigned i = 0; i < *n; i++) {
        if (implied(c, x[i], known)) {
            result = CHANGED;
            continue;
        }
        Change how = weaken(c, q, &x[i], known);
        if (how == NEVER) return NEVER;
        if (how == CHANGED) result = CHANGED;
        x[m++] = x[i];
    }
    *n = m;
    return result;
}

/* AND, or for `dual` OR, of two values neither of which is a constant. */
static Ref fold_sets(Circuit *c, const Request *q, bool dual)
{
    Ref side[2] = {q->args[0], q->args[1]};
    Factor x[2][FACTORS];
    unsigned n[2];
    Facts known[2];
    for (int i = 0; i < 2; i++) {
        n[i] = factors(c, side[i], dual, x[i], 0, FACTORS);
        list_facts(c, x[i], n[i], &known[i]);
    }
    if (conflict(&known[0], &known[1])) return ir_const(c, q->width, dual ? ~0ull : 0);
    for (int i = 1; i >= 0; i--) {
        Change how = reduce(c, q, x[i], &n[i], &known[!i]);
        if (how == NEVER) return ir_const(c, q->width, dual ? ~0ull : 0);
        if (how == KEPT) continue;
        Ref rest = build_list(c, q, x[i], n[i], dual);
        return ir_op(c, q->kind, q->width, 0, 2, (Ref[]){side[!i], rest}, q->span);
    }
    return 0;
}

/* x AND k, x OR k: runs of bits that pass and runs of constants, which is wiring. */
static Ref fold_mask(Circuit *c, const Request *q, uint64_t k, bool dual)
{
    Ref part[64];
    unsigned n = 0;
    for (unsigned hi = q->width; hi > 0;) {
        bool bit = k >> (hi - 1) & 1;
        unsigned lo = hi - 1;
        while (lo > 0 && (k >> (lo - 1) & 1) == bit) lo--;
        unsigned w = hi - lo;
        part[n++] = bit != dual ? ir_op(c, OP_SLICE, w, lo, 1, &q->args[0], q->span) : ir_const(c, w, dual ? ~0ull : 0);
        hi = lo;
    }
    return n == 1 ? part[0] : ir_op(c, OP_CAT, q->width, 0, n, part, q->span);
}

static Ref fold_junction(Circuit *c, const Request *q, bool dual)
{
    uint64_t k;
    if (q->args[0] == q->args[1]) return q->args[0];
    if (ir_is_const(c, q->args[1], &k)) return fold_mask(c, q, k, dual);
    return fold_sets(c, q, dual);
}

Ref fold_and(Circuit *c, const Request *q) { return fold_junction(c, q, false); }
Ref fold_or(Circuit *c, const Request *q) { return fold_junction(c, q, true); }

/* ---- what passes ask ---- */

static bool exclusive(const Circuit *c, Ref a, Ref b, int depth)
{
    const Op *op = op_at(c, a);
    if (op->kind == OP_OR && depth > 0)
        return exclusive(c, arg_at(c, a, 0), b, depth - 1) && exclusive(c, arg_at(c, a, 1), b, depth - 1);
    if (op_at(c, b)->kind == OP_OR && depth > 0) return exclusive(c, b, a, depth);
    Factor x[2][FACTORS];
    Facts known[2];
    unsigned na = factors(c, a, false, x[0], 0, FACTORS), nb = factors(c, b, false, x[1], 0, FACTORS);
    list_facts(c, x[0], na, &known[0]);
    list_facts(c, x[1], nb, &known[1]);
    if (conflict(&known[0], &known[1])) return true;
    for (unsigned i = 0; i < na; i++)
        if (implied(c, (Factor){x[0][i].r, !x[0][i].neg}, &known[1])) return true;
    for (unsigned i = 0; i < nb; i++)
        if (implied(c, (Factor){x[1][i].r, !x[1][i].neg}, &known[0])) return true;
    return false;
}

bool ir_exclusive(const Circuit *c, Ref a, Ref b) { return exclusive(c, a, b, 6); }

static bool implies(const Circuit *c, Ref a, Ref b, int depth)
{
    if (op_at(c, a)->kind == OP_OR && depth > 0)
        return implies(c, arg_at(c, a, 0), b, depth - 1) && implies(c, arg_at(c, a, 1), b, depth - 1);
    Factor x[FACTORS], y[FACTORS];
    Facts known;
    unsigned n = factors(c, a, false, x, 0, FACTORS), m = factors(c, b, false, y, 0, FACTORS);
    list_facts(c, x, n, &known);
    for (unsigned i = 0; i < m; i++)
        if (!implied(c, y[i], &known)) return false;
    return true;
}

bool ir_implies(const Circuit *c, Ref a, Ref b) { return a == b || implies(c, a, b, 6); }
