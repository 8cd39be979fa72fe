/* map.c: when every node is computed, and from what.
 *
 * Labels: the earliest MLP time at which a node can exist. A node whose operands are all older is computed from them as literals; one
 * whose latest operands are of the same MLP time t may swallow their definitions and be computed at t as well, if the resulting sum of
 * units stays within `limit` terms (depth-optimal technology mapping, as FlowMap does for look-up tables, with sums of relu(L)*M in the
 * place of tables). Requires: port homes set, so that port bits have their labels. */
#include "backend.h"
#include <stdlib.h>
#include <string.h>

enum { LIMIT_GATE = 24, LIMIT_SUM = 160 };

int map_lit_label(const Net *n, Lit l)
{
    return n->nodes.data[lit_node(l)].label;
}

/* The literal as an expression usable at time t: as a leaf when older, else by its own definition at t. */
static Expr use(const Net *n, Lit l, int t)
{
    const NodeInfo *x = &n->nodes.data[lit_node(l)];
    if (x->label < t) return expr_lin(lin_lit(l));
    return lit_inv(l) ? expr_not(x->fast) : x->fast;
}

static bool combine(const Net *n, const NodeInfo *x, int t, Expr *out)
{
    Expr a, b, c, p;
    switch (x->kind) {
    case N_AND: return expr_mul(n, use(n, x->args[0], t), use(n, x->args[1], t), LIMIT_GATE, out);
    case N_XOR:
        a = use(n, x->args[0], t), b = use(n, x->args[1], t);
        if (!expr_mul(n, a, b, LIMIT_GATE, &p)) return false;
        *out = expr_add(n, expr_add(n, a, b, 1), p, -2);
        return out->n <= LIMIT_GATE;
    case N_MUX:
        c = use(n, x->args[0], t), a = use(n, x->args[1], t), b = use(n, x->args[2], t);
        if (a.n == 0 && b.n == 0) { /* b + c (a - b): one unit */
            if (!expr_mul(n, c, expr_add(n, a, b, -1), LIMIT_GATE, &p)) return false;
            *out = expr_add(n, b, p, 1);
            return out->n <= LIMIT_GATE;
        }
        if (!expr_mul(n, c, a, LIMIT_GATE, &p) || !expr_mul(n, expr_not(c), b, LIMIT_GATE, out)) return false;
        *out = expr_add(n, *out, p, 1);
        return out->n <= LIMIT_GATE;
    default: die("node kind %d is no gate", x->kind);
    }
}

/* Exclusive sum: each pair c * v alone; merged once at the end. */
static bool combine_psum(const Net *n, const NodeInfo *x, int t, Expr *out)
{
    Expr *p = xalloc(x->nargs / 2 * sizeof *p);
    uint32_t total = 0;
    for (uint32_t i = 0; i < x->nargs / 2; i++) {
        if (!expr_mul(n, use(n, x->args[2 * i], t), use(n, x->args[2 * i + 1], t), LIMIT_GATE, &p[i])) return false;
        total += p[i].n;
        if (total > 2 * LIMIT_SUM) return false;
    }
    /* pairwise, so that the cost stays n log n */
    for (uint32_t k = x->nargs / 2; k > 1; k = (k + 1) / 2)
        for (uint32_t i = 0; i < (k + 1) / 2; i++) p[i] = 2 * i + 1 < k ? expr_add(n, p[2 * i], p[2 * i + 1], 1) : p[2 * i];
    *out = p[0];
    return out->n <= LIMIT_SUM;
}

static bool define(const Net *n, const NodeInfo *x, int t, Expr *out)
{
    return x->kind == N_PSUM ? combine_psum(n, x, t, out) : combine(n, x, t, out);
}

static int lin_label(const Net *n, Lin l)
{
    int t = -1;
    for (uint32_t i = 0; i < l.n; i++)
        if (n->nodes.data[l.t[i].node].label > t) t = n->nodes.data[l.t[i].node].label;
    return t;
}

static int max2(int a, int b) { return a > b ? a : b; }

static int expr_label(const Net *n, Expr e)
{
    int t = lin_label(n, e.lin);
    for (uint32_t i = 0; i < e.n; i++) {
        t = max2(t, max2(lin_label(n, e.t[i].core), lin_label(n, e.t[i].up)));
        for (uint32_t j = 0; j < e.t[i].nlits; j++) t = max2(t, map_lit_label(n, e.t[i].lits[j]));
    }
    return t;
}

static int next_mlp(int t) { return t < 1 ? 1 : t % 2 ? t + 2 : t + 1; }

void map_label_one(Net *n, Node i)
{
    NodeInfo *x = &n->nodes.data[i];
    if (x->kind == N_CONST || x->kind == N_TOKEN) {
        x->label = -1;
        return;
    }
    if (x->kind == N_PORT) {
        x->label = 2 * n->ports.data[x->port].last;
        return;
    }
    if (x->kind == N_EXPR) {
        x->label = next_mlp(expr_label(n, x->expr));
        x->fast = x->expr;
        return;
    }
    int t = -1;
    for (uint32_t k = 0; k < x->nargs; k++) t = max2(t, map_lit_label(n, x->args[k]));
    if (t >= 1 && t % 2 && define(n, x, t, &x->fast)) {
        x->label = t;
        return;
    }
    x->label = next_mlp(t);
    if (!define(n, x, x->label, &x->fast)) die("a gate of %u literals is too wide for one level", x->nargs);
}

void map_label(Net *n, Node from)
{
    for (Node i = from; i < n->nodes.n; i++) map_label_one(n, i);
}

void map_label_new(Net *n)
{
    Node from = n->nodes.n;
    while (from > 1 && n->nodes.data[from - 1].label == INT32_MIN) from--;
    map_label(n, from);
}

/* ---- covering ---- */

static void require_lin(Net *n, Lin l, int t)
{
    for (uint32_t i = 0; i < l.n; i++) {
        NodeInfo *x = &n->nodes.data[l.t[i].node];
        if (t < x->need) x->need = t;
    }
}

static void require_expr(Net *n, Expr e, int t)
{
    require_lin(n, e.lin, t);
    for (uint32_t i = 0; i < e.n; i++) {
        require_lin(n, e.t[i].core, t);
        require_lin(n, e.t[i].up, t);
        for (uint32_t j = 0; j < e.t[i].nlits; j++) require_lin(n, lin_lit(e.t[i].lits[j]), t);
    }
}

/* Where time allows, compute a gate from its operands as they stand rather than swallowing them: cheaper when they are needed anyway. */
static void choose(Net *n, NodeInfo *x, const uint32_t *uses)
{
    x->time = x->label;
    x->impl = x->fast;
    if (x->kind == N_EXPR) return;
    int t = -1;
    for (uint32_t k = 0; k < x->nargs; k++) t = max2(t, map_lit_label(n, x->args[k]));
    int late = next_mlp(t);
    Expr slow;
    if (late == x->label || late > x->need || !define(n, x, late, &slow)) return;
    double cost = slow.n + 1;
    for (uint32_t k = 0; k < x->nargs; k++) {
        const NodeInfo *a = &n->nodes.data[lit_node(x->args[k])];
        if (a->label == x->label && a->need == INT32_MAX) cost += (double)a->fast.n / uses[lit_node(x->args[k])];
    }
    if (cost >= x->fast.n) return;
    x->time = late;
    x->impl = slow;
}

/* How many gates take each node as an operand: they share what it costs. */
static uint32_t *count_uses(const Net *n)
{
    uint32_t *uses = xalloc(n->nodes.n * sizeof *uses);
    for (Node i = 1; i < n->nodes.n; i++)
        for (uint32_t k = 0; k < n->nodes.data[i].nargs; k++) uses[lit_node(n->nodes.data[i].args[k])]++;
    return uses;
}

void map_cover(Net *n, const Lit *roots, unsigned nroots, int last_time)
{
    const uint32_t *uses = count_uses(n);
    for (Node i = 0; i < n->nodes.n; i++) n->nodes.data[i].need = INT32_MAX, n->nodes.data[i].time = -2;
    for (unsigned i = 0; i < nroots; i++) require_lin(n, lin_lit(roots[i]), last_time);
    for (uint32_t p = 0; p < n->ports.n; p++) {
        const Port *q = &n->ports.data[p];
        int t = 2 * q->home - 1;
        for (uint32_t i = 0; i < q->nraddr; i++) require_lin(n, lin_lit(q->raddr[i]), t);
        require_lin(n, lin_lit(q->rgate), t);
        require_lin(n, lin_lit(q->load_on), t);
        for (uint32_t i = 0; q->load_on != LIT0 && i < q->nload_addr; i++) require_lin(n, lin_lit(q->load_addr[i]), t);
        for (uint32_t i = 0; q->load_on != LIT0 && i < q->width; i++) require_lin(n, lin_lit(q->load_data[i]), t);
        if (!q->written) continue;
        for (uint32_t i = 0; i < q->nwaddr; i++) require_lin(n, lin_lit(q->waddr[i]), t);
        for (uint32_t i = 0; i < q->nen; i++) require_lin(n, lin_lit(q->en[i]), t);
        for (uint32_t i = 0; q->lanes && i < port_lanes(q); i++) require_lin(n, lin_lit(q->lanes[i]), t);
        for (uint32_t i = 0; q->data && i < q->width; i++) require_lin(n, lin_lit(q->data[i]), t);
        for (uint32_t i = 0; q->lane_key && i < port_lanes(q); i++) require_lin(n, lin_lit(q->lane_key[i]), t);
        for (uint32_t i = 0; i < 2; i++) require_lin(n, lin_lit(q->en_any[i]), t);
        if (q->cnt_bits) require_lin(n, lin_lit(q->bump), t);
        require_lin(n, lin_lit(q->late), t);
        require_lin(n, lin_lit(q->latch_begin), t);
        require_lin(n, lin_lit(q->latch_set), t);
    }
    for (Node i = n->nodes.n; i-- > 1;) {
        NodeInfo *x = &n->nodes.data[i];
        if (x->need == INT32_MAX) continue;
        if (x->label > x->need) die("node %u of time %d is needed at %d", i, x->label, x->need);
        if (x->kind == N_TOKEN || x->kind == N_PORT) {
            x->time = x->label;
            continue;
        }
        choose(n, x, uses);
        require_expr(n, x->impl, x->time - 1);
    }
}
