/* idle.c: when nobody looks at a value. A product is hundreds of units that would all be busy in every step with whatever the
 * registers hold; under the conditions that observe.c finds its operands can be held at 0 instead. Only conditions that are older than the
 * value and no later than its operands are taken, so that no level is added. */
#include "backend.h"
#include "../frontend/passes.h" /* its Lit is one over values of the netlist */

struct Idle {
    uint32_t n; /* ops that are known */
    LitSet *at;
};

struct Idle *idle_find(const Circuit *c)
{
    struct Idle *i = xalloc(sizeof *i);
    *i = (struct Idle){c->ops.n, observe_values(c, OBSERVE_KEEP)};
    return i;
}

static Lit idle_gate(Net *n, const struct Idle *idle, Ref r, Lit *const *bits, int limit)
{
    Lit g = LIT1;
    if (!idle || r >= idle->n || idle->at[r].all) return g;
    for (uint32_t i = 0; i < idle->at[r].n; i++) {
        uint32_t l = idle->at[r].lit[i];
        Ref x = lit_ref(l);
        if (x >= r || !bits[x]) continue;
        Lit with = g_and(n, g, bits[x][0] ^ lit_neg(l));
        map_label_new(n);
        if (map_lit_label(n, with) <= limit) g = with;
    }
    return g;
}

/* The earliest time of a bit of the word that is no constant, or t if that is earlier. */
static int word_label(const Net *n, unsigned w, const Lit *a, int t)
{
    for (unsigned i = 0; a && i < w; i++)
        if (lit_node(a[i]) && map_lit_label(n, a[i]) < t) t = map_lit_label(n, a[i]);
    return t;
}

void idle_hold(Net *n, const struct Idle *idle, Ref r, Lit *const *bits, SumTerm *t, unsigned nt)
{
    int limit = INT32_MAX;
    map_label_new(n);
    for (unsigned i = 0; i < nt; i++) limit = word_label(n, op_at(n->c, r)->width, t[i].y, word_label(n, op_at(n->c, r)->width, t[i].a, limit));
    Lit g = idle_gate(n, idle, r, bits, limit);
    for (unsigned i = 0; i < nt; i++) t[i].gate = g;
}
