/* hazard.c: may a state element be written in the same pass that reads it?
 *
 * A direct write takes effect before the reads of its pass, and again in every pass of the step. That is right exactly when nothing
 * that the step says or writes can observe the element's read ports while its write is enabled. Proof by three-valued simulation: assume
 * the enable (one case per alternative of its ORs), propagate what follows, and see whether a tainted bit reaches a live sink.
 * Reads of a `forward` element are meant to see the write, and taint nothing. */
#include "modes.h"
#include <stdlib.h>
#include <string.h>

enum { V0, V1, VX, VT, UNSET }; /* false, true, unknown, depends on the element's ports */
/* Cases of a split, and steps towards one; past either the answer is no. A register saves less than a memory. */
enum { MEM_CASES = 512, REG_CASES = 16, STEPS = 32 };

typedef struct {
    const Modes *m;
    const Net *n;
    uint32_t state;
    uint8_t *preset, *val;
    unsigned cases, steps, most;
} Hazard;

static int lit_val(const Hazard *h, Lit l)
{
    int v = h->val[lit_node(l)];
    return v <= V1 ? v ^ (int)lit_inv(l) : v;
}

static int and2(int a, int b)
{
    if (a == V0 || b == V0) return V0;
    if (a == VT || b == VT) return VT;
    return a == V1 && b == V1 ? V1 : VX;
}

static int or2(int a, int b)
{
    if (a == V1 || b == V1) return V1;
    if (a == VT || b == VT) return VT;
    return a == V0 && b == V0 ? V0 : VX;
}

static int mux_val(int c, int a, int b)
{
    if (c == V1) return a;
    if (c == V0) return b;
    if (a == b && a <= V1) return a;
    return c == VT || a == VT || b == VT ? VT : VX;
}

static int lin_taint(const Hazard *h, Lin l, int v)
{
    for (uint32_t i = 0; i < l.n; i++)
        if (h->val[l.t[i].node] == VT) v = VT;
    return v;
}

static int expr_val(const Hazard *h, const NodeInfo *x)
{
    int v = lin_taint(h, x->expr.lin, VX);
    for (uint32_t i = 0; i < x->expr.n; i++) {
        const Term *t = &x->expr.t[i];
        v = lin_taint(h, t->up, lin_taint(h, t->core, v));
        for (uint32_t k = 0; k < t->nlits; k++)
            if (lit_val(h, t->lits[k]) == VT) v = VT;
    }
    return v;
}

static int node_val(const Hazard *h, const NodeInfo *x)
{
    int v;
    switch (x->kind) {
    case N_CONST: return V0;
    case N_TOKEN: return VX;
    case N_PORT:
        if (h->n->ports.data[x->port].state == h->state && !h->m->c->states.data[h->state].forward) return VT;
        for (uint32_t i = 0; i < h->n->ports.data[x->port].nraddr; i++)
            if (lit_val(h, h->n->ports.data[x->port].raddr[i]) == VT) return VT;
        return VX;
    case N_AND: return and2(lit_val(h, x->args[0]), lit_val(h, x->args[1]));
    case N_XOR: {
        int a = lit_val(h, x->args[0]), b = lit_val(h, x->args[1]);
        return a == VT || b == VT ? VT : a == VX || b == VX ? VX : a ^ b;
    }
    case N_MUX: return mux_val(lit_val(h, x->args[0]), lit_val(h, x->args[1]), lit_val(h, x->args[2]));
    case N_PSUM:
        v = V0;
        for (uint32_t i = 0; i < x->nargs; i += 2) v = or2(v, and2(lit_val(h, x->args[i]), lit_val(h, x->args[i + 1])));
        return v;
    default: return expr_val(h, x);
    }
}

/* Sets a literal true and what an AND implies; false on a contradiction. */
static bool assume(Hazard *h, Lit l)
{
    Node i = lit_node(l);
    int want = lit_inv(l) ? V0 : V1;
    if (i == 0) return lit_inv(l);
    if (h->preset[i] != UNSET) return h->preset[i] == want;
    h->preset[i] = (uint8_t)want;
    const NodeInfo *x = &h->n->nodes.data[i];
    if (x->kind == N_AND && want == V1) return assume(h, x->args[0]) && assume(h, x->args[1]);
    return true;
}

static bool ref_tainted(const Hazard *h, Ref r)
{
    for (unsigned i = 0; r && i < op_at(h->m->c, r)->width; i++)
        if (lit_val(h, h->m->bits.bits[r][i]) == VT) return true;
    return false;
}

static bool case_is_clean(Hazard *h)
{
    const Circuit *c = h->m->c;
    for (Node i = 0; i < h->n->nodes.n; i++)
        h->val[i] = h->preset[i] != UNSET ? h->preset[i] : (uint8_t)node_val(h, &h->n->nodes.data[i]);
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        int en = lit_val(h, h->m->bits.bits[w->en][0]);
        if (en == VT || (en != V0 && (ref_tainted(h, w->data) || ref_tainted(h, w->index) || ref_tainted(h, w->lanes)))) return false;
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        int en = lit_val(h, h->m->bits.bits[e->en][0]);
        if (en == VT || (en != V0 && ref_tainted(h, e->payload))) return false;
    }
    return !ref_tainted(h, c->retire);
}

static bool is_or(const Hazard *h, Lit l) { return lit_inv(l) && h->n->nodes.data[lit_node(l)].kind == N_AND; }

/* What has been assumed of a literal: V0, V1 or UNSET. */
static int assumed(const Hazard *h, Lit l)
{
    int v = h->preset[lit_node(l)];
    return v <= V1 ? v ^ (int)lit_inv(l) : UNSET;
}

/* Every way to make all of `todo` true: ANDs are expanded, then each OR gives one case per side, but none where a side is known. */
static bool cases_clean(Hazard *h, Lit *todo, unsigned n)
{
    if (n == 0) return ++h->cases <= h->most && case_is_clean(h);
    if (++h->steps > STEPS * h->most) return false;
    for (unsigned i = n; i-- > 0 && is_or(h, todo[n - 1]);)
        if (!is_or(h, todo[i])) {
            Lit t = todo[i];
            todo[i] = todo[n - 1], todo[n - 1] = t;
        }
    Lit l = todo[n - 1];
    const NodeInfo *x = &h->n->nodes.data[lit_node(l)];
    if (is_or(h, l)) {
        int a = assumed(h, lit_not(x->args[0])), b = assumed(h, lit_not(x->args[1]));
        if (a == V1 || b == V1 || assumed(h, l) == V1) return cases_clean(h, todo, n - 1);
        if (a == V0 && b == V0) return true;
    }
    uint8_t *saved = xrealloc(NULL, h->n->nodes.n);
    memcpy(saved, h->preset, h->n->nodes.n);
    Lit *rest = xrealloc(NULL, (n + 2) * sizeof *rest);
    memcpy(rest, todo, (n - 1) * sizeof *rest);
    bool ok = true;
    if (x->kind == N_AND && lit_inv(l)) { /* OR: first side, or the second */
        for (unsigned k = 0; k < 2 && ok; k++) {
            if (assumed(h, lit_not(x->args[k])) == V0) continue;
            memcpy(h->preset, saved, h->n->nodes.n);
            rest[n - 1] = lit_not(x->args[k]);
            ok = cases_clean(h, rest, n);
        }
    } else if (x->kind == N_AND) {
        rest[n - 1] = x->args[0], rest[n] = x->args[1];
        ok = cases_clean(h, rest, n + 1);
    } else if (assume(h, l)) ok = cases_clean(h, rest, n - 1);
    memcpy(h->preset, saved, h->n->nodes.n);
    free(saved);
    free(rest);
    return ok;
}

bool hazard_free(const Modes *m, uint32_t s)
{
    uint32_t n = m->net->nodes.n;
    Hazard h = {.m = m, .n = m->net, .state = s, .preset = xrealloc(NULL, n), .val = xrealloc(NULL, n)};
    h.most = m->c->states.data[s].rows > 1 ? MEM_CASES : REG_CASES;
    memset(h.preset, UNSET, n);
    Lit en = m->bits.bits[write_of(m->c, s)->en][0];
    bool ok = cases_clean(&h, &en, 1);
    free(h.preset), free(h.val);
    return ok;
}
