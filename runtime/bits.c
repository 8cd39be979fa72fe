/* bits.c: nodes over bit planes, hashed so that equal ones are one; sums by carry-save adders; tables by multiplexers.
 * A node is an AND of two references or an XOR of two plain ones; a reference may be negated, so that OR, NOR and XNOR are the same two nodes. */
#include "bits.h"
#include <stdlib.h>

enum { FEW_SLOTS = 4096 };

void bits_init(Bits *g)
{
    *g = (Bits){0};
    bits_reset(g);
}

/* The table begins small again: what comes may be far less than what was there, and a large one is far away. */
void bits_reset(Bits *g)
{
    g->node.n = 0;
    g->nslots = FEW_SLOTS;
    g->slot = xrealloc(g->slot, g->nslots * sizeof *g->slot);
    memset(g->slot, 0xff, g->nslots * sizeof *g->slot);
    vec_push(&g->node, ((Node){NODE_CONST, 0, 0}));
}

void bits_free(Bits *g)
{
    free(g->node.data);
    free(g->slot);
}

static uint32_t *find_slot(const Bits *g, Node x)
{
    uint32_t h = ((uint32_t)x.op * 0x85ebca6bu ^ x.a) * 0x9e3779b1u;
    h = (h ^ h >> 15 ^ x.b) * 0xc2b2ae35u;
    for (h = (h ^ h >> 13) & (g->nslots - 1);; h = (h + 1) & (g->nslots - 1)) {
        uint32_t i = g->slot[h];
        if (i == UINT32_MAX) return &g->slot[h];
        const Node *y = &g->node.data[i];
        if (y->op == x.op && y->a == x.a && y->b == x.b) return &g->slot[h];
    }
}

static void rehash(Bits *g)
{
    g->nslots *= 4;
    g->slot = xrealloc(g->slot, g->nslots * sizeof *g->slot);
    memset(g->slot, 0xff, g->nslots * sizeof *g->slot);
    for (uint32_t i = 1; i < g->node.n; i++) *find_slot(g, g->node.data[i]) = i;
}

static Ref intern_node(Bits *g, Node x)
{
    uint32_t *s = find_slot(g, x);
    if (*s == UINT32_MAX) {
        *s = g->node.n;
        vec_push(&g->node, x);
        if (g->node.n * 2 > g->nslots) rehash(g);
        return (g->node.n - 1) << 1;
    }
    return *s << 1;
}

Ref bits_leaf(Bits *g, uint32_t slot) { return intern_node(g, (Node){NODE_LEAF, slot, 0}); }

/* Whether x is an AND one of whose factors is f. */
static bool has_factor(const Bits *g, Ref x, Ref f)
{
    const Node *n = &g->node.data[x >> 1];
    return !(x & 1) && n->op == NODE_AND && (n->a == f || n->b == f);
}

/* Both ANDs, of which one has a factor that the other has negated. */
static bool opposed(const Bits *g, Ref a, Ref b)
{
    const Node *x = &g->node.data[a >> 1];
    if ((a & 1) || x->op != NODE_AND) return false;
    return has_factor(g, b, bits_not(x->a)) || has_factor(g, b, bits_not(x->b));
}

/* What is left of b, the negation of an AND, where its factor a is 1; b itself when a is no factor. */
static Ref remaining(const Bits *g, Ref a, Ref b)
{
    const Node *x = &g->node.data[b >> 1];
    if (!(b & 1) || !has_factor(g, b ^ 1, a)) return b;
    return bits_not(x->a == a ? x->b : x->a);
}

Ref bits_and_nodes(Bits *g, Ref a, Ref b)
{
    if (a > b) {
        Ref t = a;
        a = b, b = t;
    }
    if (a == bits_not(b)) return FALSE_REF;
    if (a == b) return b;
    if (has_factor(g, b, a)) return b;
    if (has_factor(g, a, b)) return a;
    if (has_factor(g, b, bits_not(a)) || has_factor(g, a, bits_not(b)) || opposed(g, a, b)) return FALSE_REF;
    Ref less = remaining(g, a, b), fewer = remaining(g, b, a);
    if (less != b) return bits_and(g, a, less);
    if (fewer != a) return bits_and(g, fewer, b);
    return intern_node(g, (Node){NODE_AND, a, b});
}

Ref bits_xor_nodes(Bits *g, Ref a, Ref b)
{
    Ref flip = (a ^ b) & 1;
    a &= ~1u, b &= ~1u;
    if (a == b) return flip;
    return intern_node(g, a < b ? (Node){NODE_XOR, a, b} : (Node){NODE_XOR, b, a}) ^ flip;
}

Ref bits_mux(Bits *g, Ref s, Ref one, Ref zero)
{
    if (one == zero) return one;
    if (one == bits_not(zero)) return bits_xor(g, s, zero);
    if (one == TRUE_REF || one == s) return bits_or(g, s, zero);
    if (one == FALSE_REF) return bits_and(g, bits_not(s), zero);
    if (zero == FALSE_REF || zero == s) return bits_and(g, s, one);
    if (zero == TRUE_REF) return bits_or(g, bits_not(s), one);
    return bits_xor(g, zero, bits_and(g, s, bits_xor(g, one, zero)));
}

uint32_t bits_width(uint64_t span)
{
    uint32_t n = 0;
    for (; span; span >>= 1) n++;
    return n;
}

/* ---- sums ---- */
typedef struct {
    VEC(Ref) col[MAX_PLANES + 2];
} Columns;

static void column_put(Columns *c, uint32_t k, Ref r, uint32_t width)
{
    if (k < width && r != FALSE_REF) vec_push(&c->col[k], r);
}

static void add_constant(Columns *c, uint64_t v, uint32_t width)
{
    for (uint32_t k = 0; k < width; k++)
        if (v >> k & 1) column_put(c, k, TRUE_REF, width);
}

/* Three planes of a column become one, and a carry. */
static void full_adder(Bits *g, Columns *c, uint32_t k, const Ref *x, uint32_t width)
{
    Ref half = bits_xor(g, x[0], x[1]);
    if (k + 1 < width) column_put(c, k + 1, bits_or(g, bits_and(g, x[0], x[1]), bits_and(g, x[2], half)), width);
    vec_push(&c->col[k], bits_xor(g, half, x[2]));
}

static Ref reduce_column(Bits *g, Columns *c, uint32_t k, uint32_t width)
{
    uint32_t at = 0;
    while (c->col[k].n - at > 1) {
        Ref x[3] = {c->col[k].data[at], c->col[k].data[at + 1], FALSE_REF};
        at += 2;
        if (c->col[k].n > at) x[2] = c->col[k].data[at++];
        full_adder(g, c, k, x, width);
    }
    return c->col[k].n > at ? c->col[k].data[at] : FALSE_REF;
}

/* A negative amount is w p = w + |w| (1 - p). */
void bits_add(Bits *g, const Term *t, uint32_t n, int64_t c, uint32_t width, Ref *out)
{
    Columns cols = {0};
    uint64_t constant = (uint64_t)c;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t w = (uint64_t)(t[i].w < 0 ? -t[i].w : t[i].w);
        if (t[i].w < 0) constant -= w;
        for (uint32_t k = 0; k < width && w >> k; k++)
            if (w >> k & 1) column_put(&cols, k, t[i].w < 0 ? bits_not(t[i].plane) : t[i].plane, width);
    }
    add_constant(&cols, constant, width);
    for (uint32_t k = 0; k < width; k++) out[k] = reduce_column(g, &cols, k, width);
    for (uint32_t k = 0; k < MAX_PLANES + 2; k++) free(cols.col[k].data);
}

bool bits_sum(Bits *g, const Term *t, uint32_t n, int64_t c, Int *out)
{
    out->lo = out->hi = c;
    for (uint32_t i = 0; i < n; i++)
        if (t[i].plane == TRUE_REF) out->lo += t[i].w, out->hi += t[i].w;
        else if (t[i].plane != FALSE_REF) *(t[i].w < 0 ? &out->lo : &out->hi) += t[i].w;
    out->n = bits_width((uint64_t)(out->hi - out->lo));
    if (out->n > MAX_PLANES) return false;
    bits_add(g, t, n, c - out->lo, out->n, out->plane);
    return true;
}

/* ---- tables ---- */
Ref bits_table(Bits *g, const Ref *in, uint32_t n, const uint8_t *table, uint32_t size)
{
    bool same = true;
    for (uint32_t i = 1; i < size && same; i++) same = table[i] == table[0];
    if (same || n == 0) return table[0] ? TRUE_REF : FALSE_REF;
    uint32_t half = 1u << (n - 1);
    Ref zero = bits_table(g, in, n - 1, table, size < half ? size : half);
    if (size <= half) return zero;
    /* entries beyond the size: where the others of the upper half are the lower half's, these are too; else they are as the last one */
    if (size < 2 * half && memcmp(table, table + half, size - half) == 0) return zero;
    Ref one = bits_table(g, in, n - 1, table + half, size - half);
    return bits_mux(g, in[n - 1], one, zero);
}

/* ---- order ---- */
/* Iterative, since carry chains are deep. */
void bits_order(const Bits *g, uint32_t root, uint8_t *seen, NodeList *stack, NodeList *order)
{
    vec_push(stack, root);
    while (stack->n) {
        uint32_t i = stack->data[stack->n - 1];
        const Node *x = &g->node.data[i];
        if (!bits_computed(g, i) || seen[i]) {
            stack->n--;
            continue;
        }
        uint32_t a = x->a >> 1, b = x->b >> 1;
        bool wait_a = bits_computed(g, a) && !seen[a], wait_b = bits_computed(g, b) && !seen[b];
        if (wait_b) vec_push(stack, b);
        if (wait_a) vec_push(stack, a);
        if (wait_a || wait_b) continue;
        stack->n--;
        seen[i] = 1;
        vec_push(order, i);
    }
}
