/* expr.c: the algebra of one SwiGLU layer. An Expr is k + lin + sum of coef * relu(L) * M; this file adds and multiplies
 * them, and keeps them canonical: terms sorted, equal terms merged, contradictory literals dropped. All values immutable. */
#include "backend.h"
#include <stdlib.h>
#include <string.h>

/* ---- affine forms ---- */

Lin lin_const(int32_t k)
{
    return (Lin){k, 0, NULL};
}

Lin lin_node(Node n, int32_t coef)
{
    LinTerm *t = xalloc(sizeof *t);
    *t = (LinTerm){n, coef};
    return (Lin){0, 1, t};
}

Lin lin_lit(Lit l)
{
    if (l == LIT0 || l == LIT1) return lin_const(l == LIT1);
    Lin a = lin_node(lit_node(l), lit_inv(l) ? -1 : 1);
    a.k = lit_inv(l);
    return a;
}

Lin lin_add(Lin a, Lin b, int32_t cb)
{
    Lin r = {a.k + cb * b.k, 0, NULL};
    if (b.n == 0) return (Lin){r.k, a.n, a.t};
    r.t = xalloc((a.n + b.n) * sizeof *r.t);
    uint32_t i = 0, j = 0;
    while (i < a.n || j < b.n) {
        LinTerm t;
        if (j == b.n || (i < a.n && a.t[i].node < b.t[j].node)) t = a.t[i++];
        else if (i == a.n || b.t[j].node < a.t[i].node) {
            t = b.t[j++];
            t.coef *= cb;
        } else {
            t = a.t[i++];
            t.coef += cb * b.t[j++].coef;
        }
        if (t.coef) r.t[r.n++] = t;
    }
    return r;
}

void lin_range(const Net *net, Lin a, int64_t *lo, int64_t *hi)
{
    *lo = *hi = a.k;
    for (uint32_t i = 0; i < a.n; i++) {
        const NodeInfo *n = &net->nodes.data[a.t[i].node];
        int64_t c = a.t[i].coef;
        *lo += c * (c > 0 ? n->lo : n->hi);
        *hi += c * (c > 0 ? n->hi : n->lo);
    }
}

static int lin_cmp(Lin a, Lin b)
{
    if (a.k != b.k) return a.k < b.k ? -1 : 1;
    if (a.n != b.n) return a.n < b.n ? -1 : 1;
    return a.n ? memcmp(a.t, b.t, a.n * sizeof *a.t) : 0;
}

static bool lin_is_lit(const Net *net, Lin a, Lit *out)
{
    if (a.n != 1 || !net->nodes.data[a.t[0].node].bit) return false;
    if (a.k == 0 && a.t[0].coef == 1) *out = a.t[0].node * 2;
    else if (a.k == 1 && a.t[0].coef == -1) *out = a.t[0].node * 2 + 1;
    else return false;
    return true;
}

/* ---- terms ---- */

static bool up_is_one(const Term *t)
{
    return t->up.n == 0 && t->up.k == 1;
}

Term term_core(Lin core, int32_t cmax, double coef)
{
    return (Term){.coef = coef, .core = core, .cmax = cmax, .up = lin_const(1)};
}

static Term term_lit(Lit l)
{
    Lit *p = xalloc(sizeof *p);
    *p = l;
    return (Term){.coef = 1, .nlits = 1, .lits = p, .up = lin_const(1)};
}

static int term_cmp(const void *pa, const void *pb)
{
    const Term *a = pa, *b = pb;
    if (a->nlits != b->nlits) return a->nlits < b->nlits ? -1 : 1;
    if (a->cmax != b->cmax) return a->cmax < b->cmax ? -1 : 1;
    int d = a->nlits ? memcmp(a->lits, b->lits, a->nlits * sizeof *a->lits) : 0;
    if (!d) d = lin_cmp(a->core, b->core);
    return d ? d : lin_cmp(a->up, b->up);
}

Lin term_gate(Term t, int32_t *lmax)
{
    int32_t w = t.cmax ? t.cmax : 1;
    Lin l = t.cmax ? t.core : lin_const(1);
    for (uint32_t i = 0; i < t.nlits; i++) {
        l = lin_add(l, lin_lit(t.lits[i]), w);
        l.k -= w;
    }
    *lmax = w;
    return l;
}

typedef enum { MUL_FAIL, MUL_ZERO, MUL_OK } MulResult;

static MulResult lits_union(const Term *a, const Term *b, Term *r)
{
    r->lits = xalloc((a->nlits + b->nlits) * sizeof *r->lits + 1);
    r->nlits = 0;
    uint32_t i = 0, j = 0;
    while (i < a->nlits || j < b->nlits) {
        Lit l;
        if (j == b->nlits || (i < a->nlits && a->lits[i] < b->lits[j])) l = a->lits[i++];
        else l = b->lits[j++];
        if (r->nlits && r->lits[r->nlits - 1] == l) continue;
        if (r->nlits && r->lits[r->nlits - 1] == lit_not(l)) return MUL_ZERO;
        r->lits[r->nlits++] = l;
    }
    return MUL_OK;
}

static MulResult term_mul(const Term *a, const Term *b, Term *r)
{
    r->coef = a->coef * b->coef;
    if (a->cmax && b->cmax) return MUL_FAIL;
    if (!up_is_one(a) && !up_is_one(b)) return MUL_FAIL;
    r->core = a->cmax ? a->core : b->core;
    r->cmax = a->cmax ? a->cmax : b->cmax;
    r->up = up_is_one(a) ? b->up : a->up;
    return lits_union(a, b, r);
}

/* ---- expressions ---- */

Expr expr_lin(Lin l)
{
    return (Expr){l, 0, NULL};
}

/* A term that is a single literal, or none, is affine. */
static bool into_affine(const Term *t, Lin *lin)
{
    if (t->cmax || t->nlits > 1 || t->coef != (int32_t)t->coef || (t->nlits && !up_is_one(t))) return false;
    *lin = lin_add(*lin, t->nlits ? lin_lit(t->lits[0]) : t->up, (int32_t)t->coef);
    return true;
}

/* Of sorted terms: merges equal ones, drops zero ones and what is affine. In place. */
static Expr canonical(Lin lin, Term *t, uint32_t n)
{
    Expr e = {lin, 0, t};
    for (uint32_t i = 0, j; i < n; i = j) {
        Term x = t[i];
        for (j = i + 1; j < n && term_cmp(&x, &t[j]) == 0; j++) x.coef += t[j].coef;
        if (x.coef != 0 && !into_affine(&x, &e.lin)) t[e.n++] = x;
    }
    return e;
}

static bool sorted(const Term *t, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (term_cmp(&t[i - 1], &t[i]) > 0) return false;
    return true;
}

/* a + cb * b, of terms that are sorted: what is built by hand need not be. */
static Expr add_sorted(Expr a, Expr b, double cb)
{
    Term *t = xalloc((a.n + b.n) * sizeof *t);
    uint32_t i = 0, j = 0, n = 0;
    while (i < a.n || j < b.n) {
        if (j == b.n || (i < a.n && term_cmp(&a.t[i], &b.t[j]) <= 0)) t[n++] = a.t[i++];
        else t[n] = b.t[j++], t[n++].coef *= cb;
    }
    return canonical(lin_add(a.lin, b.lin, (int32_t)cb), t, n);
}

static Expr sort_terms(Expr e)
{
    if (sorted(e.t, e.n)) return e;
    e.t = memcpy(xalloc(e.n * sizeof *e.t), e.t, e.n * sizeof *e.t);
    qsort(e.t, e.n, sizeof *e.t, term_cmp);
    return e;
}

Expr expr_add(const Net *net, Expr a, Expr b, double cb)
{
    (void)net;
    return add_sorted(sort_terms(a), sort_terms(b), cb);
}

Expr expr_not(Expr a)
{
    return expr_add(NULL, expr_lin(lin_const(1)), a, -1);
}

/* A growing product. */
typedef struct {
    const Net *net;
    Lin lin;
    VEC(Term) t;
    unsigned limit;
} Product;

static bool put(Product *p, Term t)
{
    if (t.up.n == 0 && t.up.k != 1) {
        t.coef *= t.up.k;
        t.up = lin_const(1);
    }
    Lit l;
    if (t.coef == 0) return true;
    if (t.up.n && lin_is_lit(p->net, t.up, &l)) { /* M is a bit: a literal of the gate, which keeps M free */
        Term m = t, lt = term_lit(l), r;
        m.up = lin_const(1);
        switch (term_mul(&m, &lt, &r)) {
        case MUL_ZERO: return true;
        case MUL_FAIL: return false;
        case MUL_OK: t = r;
        }
    }
    vec_push(&p->t, t);
    return p->t.n <= 4 * p->limit + 16;
}

/* F * t where F is affine. */
static bool mul_lin_term(Product *p, Lin f, const Term *t)
{
    if (f.n == 0 && f.k == 0) return true;
    Term r = *t;
    if (f.n == 0) {
        r.coef *= f.k;
        return put(p, r);
    }
    Lit l;
    if (lin_is_lit(p->net, f, &l)) {
        Term lt = term_lit(l);
        MulResult m = term_mul(t, &lt, &r);
        return m == MUL_ZERO || (m == MUL_OK && put(p, r));
    }
    if (up_is_one(t)) {
        r.up = f;
        return put(p, r);
    }
    if (f.k && !mul_lin_term(p, lin_const(f.k), t)) return false;
    for (uint32_t i = 0; i < f.n; i++) {
        Term lt = term_lit(f.t[i].node * 2);
        if (!p->net->nodes.data[f.t[i].node].bit) return false;
        MulResult m = term_mul(t, &lt, &r);
        if (m == MUL_FAIL) return false;
        r.coef *= f.t[i].coef;
        if (m == MUL_OK && !put(p, r)) return false;
    }
    return true;
}

/* F * G, both affine. */
static bool mul_lin_lin(Product *p, Lin f, Lin g)
{
    if (f.n == 0 || g.n == 0) {
        p->lin = lin_add(p->lin, f.n ? f : g, f.n ? g.k : f.k);
        return true;
    }
    Lit lf, lg;
    bool bf = lin_is_lit(p->net, f, &lf), bg = lin_is_lit(p->net, g, &lg);
    if (bf && bg && lf == lg) {
        p->lin = lin_add(p->lin, f, 1);
        return true;
    }
    if (bf || bg) {
        Term t = term_lit(bf ? lf : lg);
        return mul_lin_term(p, bf ? g : f, &t);
    }
    int64_t lo, hi;
    for (int swap = 0; swap < 2; swap++) {
        Lin a = swap ? g : f, b = swap ? f : g;
        lin_range(p->net, a, &lo, &hi);
        if (lo >= 0 && hi >= 1 && hi < 1 << 20) {
            Term t = term_core(a, (int32_t)hi, 1);
            t.up = b;
            return put(p, t);
        }
    }
    if (f.k) p->lin = lin_add(p->lin, g, f.k);
    for (uint32_t i = 0; i < f.n; i++) {
        if (!p->net->nodes.data[f.t[i].node].bit) return false;
        Term t = term_lit(f.t[i].node * 2);
        t.coef = f.t[i].coef;
        if (!mul_lin_term(p, g, &t)) return false;
    }
    return true;
}

static bool mul_term_term(Product *p, const Term *a, const Term *b)
{
    Term r;
    MulResult m = term_mul(a, b, &r);
    return m == MUL_ZERO || (m == MUL_OK && put(p, r));
}

bool expr_mul(const Net *net, Expr a, Expr b, unsigned limit, Expr *out)
{
    Product p = {.net = net, .limit = limit, .lin = lin_const(0)};
    bool ok = mul_lin_lin(&p, a.lin, b.lin);
    for (uint32_t i = 0; ok && i < b.n; i++) ok = mul_lin_term(&p, a.lin, &b.t[i]);
    for (uint32_t i = 0; ok && i < a.n; i++) ok = mul_lin_term(&p, b.lin, &a.t[i]);
    for (uint32_t i = 0; ok && i < a.n; i++)
        for (uint32_t j = 0; ok && j < b.n; j++) ok = mul_term_term(&p, &a.t[i], &b.t[j]);
    if (ok) {
        Term *t = xalloc(p.t.n * sizeof *t + 1);
        if (p.t.n) memcpy(t, p.t.data, p.t.n * sizeof *t);
        if (!sorted(t, p.t.n)) qsort(t, p.t.n, sizeof *t, term_cmp);
        *out = canonical(p.lin, t, p.t.n);
        ok = out->n <= limit;
    }
    free(p.t.data);
    return ok;
}
