/* gates.c: the network of small integer functions between the netlist's words and the model's units.
 * Nodes are hash-consed; NOT is free (a literal carries its complement). Arithmetic is in macros.c. */
#include "backend.h"
#include <stdlib.h>
#include <string.h>

enum { PSUM_MAX = 128 }; /* pairs that one level may sum */

typedef struct {
    Node *slot;
    uint32_t cap, n;
} Hash;

Net *net_new(Circuit *c)
{
    Net *n = xalloc(sizeof *n);
    n->c = c;
    n->hash = xalloc(sizeof(Hash));
    vec_push(&n->nodes, ((NodeInfo){.kind = N_CONST, .bit = true, .label = -1, .need = INT32_MAX, .time = -1}));
    return n;
}

void net_free(Net *n)
{
    free(n->nodes.data), free(n->ports.data), free(n->kind_out.data);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdull;
}

static uint64_t lin_hash(uint64_t h, Lin l)
{
    h = mix(h, (uint32_t)l.k);
    for (uint32_t i = 0; i < l.n; i++) h = mix(h, (uint64_t)l.t[i].node << 32 | (uint32_t)l.t[i].coef);
    return h;
}

static uint64_t node_hash(const NodeInfo *x)
{
    uint64_t h = mix(x->kind, (uint64_t)x->port << 32 | x->portbit);
    for (uint32_t i = 0; i < x->nargs; i++) h = mix(h, x->args[i]);
    if (x->kind == N_EXPR) {
        h = lin_hash(h, x->expr.lin);
        for (uint32_t i = 0; i < x->expr.n; i++) {
            const Term *t = &x->expr.t[i];
            h = lin_hash(mix(h, (uint64_t)(int64_t)(t->coef * 4)), t->core);
            for (uint32_t j = 0; j < t->nlits; j++) h = mix(h, t->lits[j]);
            h = lin_hash(h, t->up);
        }
    }
    return h;
}

static bool lin_same(Lin a, Lin b)
{
    return a.k == b.k && a.n == b.n && (!a.n || !memcmp(a.t, b.t, a.n * sizeof *a.t));
}

static bool expr_same(Expr a, Expr b)
{
    if (a.n != b.n || !lin_same(a.lin, b.lin)) return false;
    for (uint32_t i = 0; i < a.n; i++) {
        const Term *s = &a.t[i], *t = &b.t[i];
        if (s->coef != t->coef || s->nlits != t->nlits || s->cmax != t->cmax) return false;
        if (!lin_same(s->core, t->core) || !lin_same(s->up, t->up)) return false;
        if (s->nlits && memcmp(s->lits, t->lits, s->nlits * sizeof *s->lits)) return false;
    }
    return true;
}

static bool node_same(const NodeInfo *a, const NodeInfo *b)
{
    if (a->kind != b->kind || a->nargs != b->nargs || a->port != b->port || a->portbit != b->portbit) return false;
    if (a->nargs && memcmp(a->args, b->args, a->nargs * sizeof *a->args)) return false;
    return a->kind != N_EXPR || expr_same(a->expr, b->expr);
}

static void hash_grow(Net *n, Hash *h)
{
    h->cap = h->cap ? h->cap * 2 : 4096;
    h->slot = xalloc(h->cap * sizeof *h->slot);
    for (Node i = 1; i < n->nodes.n; i++) {
        uint32_t k = (uint32_t)node_hash(&n->nodes.data[i]) & (h->cap - 1);
        while (h->slot[k]) k = (k + 1) & (h->cap - 1);
        h->slot[k] = i;
    }
}

static Node node_make(Net *n, NodeInfo x)
{
    Hash *h = n->hash;
    if (n->nodes.n * 2 >= h->cap) hash_grow(n, h);
    uint32_t k = (uint32_t)node_hash(&x) & (h->cap - 1);
    for (; h->slot[k]; k = (k + 1) & (h->cap - 1))
        if (node_same(&n->nodes.data[h->slot[k]], &x)) return h->slot[k];
    if (x.nargs) {
        Lit *copy = xalloc(x.nargs * sizeof *copy);
        memcpy(copy, x.args, x.nargs * sizeof *copy);
        x.args = copy;
    }
    x.label = INT32_MIN;
    x.need = INT32_MAX;
    x.time = -2;
    h->slot[k] = vec_push(&n->nodes, x);
    return h->slot[k];
}

Node g_input(Net *n, NodeKind kind, uint32_t port, uint32_t bit, int32_t lo, int32_t hi)
{
    return node_make(n, (NodeInfo){.kind = kind, .port = port, .portbit = bit, .lo = lo, .hi = hi, .bit = lo == 0 && hi == 1});
}

Node g_expr(Net *n, Expr e, int32_t lo, int32_t hi, Span span)
{
    return node_make(n, (NodeInfo){.kind = N_EXPR, .expr = e, .lo = lo, .hi = hi, .bit = lo == 0 && hi == 1, .span = span});
}

static Node gate(Net *n, NodeKind kind, const Lit *args, uint32_t nargs)
{
    return node_make(n, (NodeInfo){.kind = kind, .args = (Lit *)args, .nargs = nargs, .hi = 1, .bit = true});
}

Lit g_and(Net *n, Lit a, Lit b)
{
    if (a > b) { Lit t = a; a = b; b = t; }
    if (a == LIT0 || b == lit_not(a)) return LIT0;
    if (a == LIT1 || a == b) return b;
    return gate(n, N_AND, (Lit[]){a, b}, 2) * 2;
}

static bool keep_none(const Net *n, Lit l, void *ctx)
{
    (void)n, (void)l, (void)ctx;
    return false;
}

void g_and_lits(const Net *n, Lit l, bool (*keep)(const Net *, Lit, void *), void *ctx, Lit **out, uint32_t *nout)
{
    VEC(Lit) todo = {0}, done = {0};
    vec_push(&todo, l);
    while (todo.n) {
        Lit x = todo.data[--todo.n];
        const NodeInfo *i = &n->nodes.data[lit_node(x)];
        if (i->kind == N_AND && !lit_inv(x) && !keep(n, x, ctx)) {
            vec_push(&todo, i->args[0]);
            vec_push(&todo, i->args[1]);
            continue;
        }
        bool seen = false;
        for (uint32_t k = 0; k < done.n && !seen; k++) seen = done.data[k] == x;
        if (!seen) vec_push(&done, x);
    }
    free(todo.data);
    *out = xalloc(done.n * sizeof(Lit) + 1);
    if (done.n) memcpy(*out, done.data, done.n * sizeof(Lit));
    *nout = done.n;
    free(done.data);
}

/* p&x | q&x = (p|q) & x: guards that all alternatives share stay outside, where a port takes them for free. */
static bool factor(Net *n, Lit a, Lit b, Lit *out)
{
    Lit *la, *lb;
    uint32_t na, nb;
    g_and_lits(n, a, keep_none, NULL, &la, &na);
    g_and_lits(n, b, keep_none, NULL, &lb, &nb);
    if (na < 2 || nb < 2) return false;
    Lit common = LIT1, ra = LIT1, rb = LIT1;
    bool *used = xalloc(nb + 1);
    for (uint32_t i = 0; i < na; i++) {
        bool hit = false;
        for (uint32_t j = 0; j < nb && !hit; j++)
            if (la[i] == lb[j]) hit = used[j] = true;
        if (hit) common = g_and(n, common, la[i]);
        else ra = g_and(n, ra, la[i]);
    }
    if (common == LIT1) return false;
    for (uint32_t j = 0; j < nb; j++)
        if (!used[j]) rb = g_and(n, rb, lb[j]);
    *out = g_and(n, common, g_or(n, ra, rb));
    return true;
}

Lit g_or(Net *n, Lit a, Lit b)
{
    Lit r;
    if (a > 1 && b > 1 && a != b && factor(n, a, b, &r)) return r;
    return lit_not(g_and(n, lit_not(a), lit_not(b)));
}

Lit g_xor(Net *n, Lit a, Lit b)
{
    Lit inv = (a ^ b) & 1;
    a &= ~1u, b &= ~1u;
    if (a > b) { Lit t = a; a = b; b = t; }
    if (a == b) return inv;
    if (a == LIT0) return b ^ inv;
    return (gate(n, N_XOR, (Lit[]){a, b}, 2) * 2) ^ inv;
}

Lit g_mux(Net *n, Lit c, Lit a, Lit b)
{
    if (c == LIT1 || a == b) return a;
    if (c == LIT0) return b;
    if (lit_inv(c)) return g_mux(n, lit_not(c), b, a);
    if (a == LIT1 || a == c) return g_or(n, c, b);
    if (a == LIT0 || a == lit_not(c)) return g_and(n, lit_not(c), b);
    if (b == LIT0 || b == c) return g_and(n, c, a);
    if (b == LIT1 || b == lit_not(c)) return g_or(n, lit_not(c), a);
    if (a == lit_not(b)) return lit_not(g_xor(n, c, a));
    return gate(n, N_MUX, (Lit[]){c, a, b}, 3) * 2;
}

Lit g_psum(Net *n, const Lit *cv, unsigned pairs)
{
    Lit *a = xalloc((2 * pairs + 1) * sizeof *a);
    unsigned k = 0;
    for (unsigned i = 0; i < pairs; i++) {
        Lit c = cv[2 * i], v = cv[2 * i + 1];
        if (c == LIT0 || v == LIT0 || v == lit_not(c)) continue;
        if (c == LIT1) return v;
        if (v == c) v = LIT1;
        a[2 * k] = c;
        a[2 * k + 1] = v;
        k++;
    }
    if (k == 0) return LIT0;
    if (k == 1) return g_and(n, a[0], a[1]);
    if (k > PSUM_MAX) { /* a tree of sums; parts of an exclusive sum are exclusive */
        unsigned half = k / 2;
        Lit part[4] = {g_psum(n, a, half), LIT1, g_psum(n, a + 2 * half, k - half), LIT1};
        return g_psum(n, part, 2);
    }
    return gate(n, N_PSUM, a, 2 * k) * 2;
}
