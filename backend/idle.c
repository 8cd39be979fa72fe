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
    *i = (struct Idle){c->ops.n, observe_values(c, OBSERVE_IDLE)};
    return i;
}

/* The latest or earliest time of the bits that are no constants. */
static int time_limit(const Net *n, const Lit *const *by, unsigned words, unsigned w, bool latest)
{
    int t = latest ? -1 : INT32_MAX;
    for (unsigned k = 0; k < words; k++)
        for (unsigned i = 0; by[k] && i < w; i++) {
            int x = map_lit_label(n, by[k][i]);
            if (lit_node(by[k][i]) && (latest ? x > t : x < t)) t = x;
        }
    return t;
}

Lit idle_gate(Net *n, const struct Idle *idle, Ref r, Lit *const *bits, const Lit *const *by, unsigned words, unsigned w, bool latest)
{
    Lit g = LIT1;
    if (!idle || r >= idle->n || idle->at[r].all) return g;
    map_label_new(n);
    int limit = time_limit(n, by, words, w, latest);
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
