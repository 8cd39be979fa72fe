/* observe.c: for every value a set of literals that are all true whenever it matters.
 *
 * Walks from the users down: the operands of a write or emit matter under its enable, an arm of a MUX or PMUX under its
 * condition, one side of a 1-bit AND (OR) while the other side is 1 (0). A value with several users matters under what is
 * common to all. Sets that grow too large lose members: less is known then, nothing wrong.
 *
 * The two uses differ where two operands could excuse each other. OBSERVE_KEEP takes both sides of an AND, so whoever uses it may
 * rely only on literals that his own change leaves alone. OBSERVE_SIMPLIFY lets only the older side speak for the newer one, and
 * says nothing of the conditions of a PMUX: then every value may be simplified under its set at the same time, because the
 * literal that excuses a change is kept by the user that it was taken from, and PMUX conditions stay exact (and exclusive). */
#include "passes.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct {
    uint32_t n;
    Lit lit[MOST];
} Bag;

typedef struct {
    const Circuit *c;
    ObserveUse use;
    LitSet *at;
} Walk;

static int lit_order(const void *x, const void *y)
{
    const Lit *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

bool litset_has(const LitSet *s, Lit l) { return s->n && bsearch(&l, s->lit, s->n, sizeof l, lit_order); }

Lit lit_of(const Circuit *c, Ref r, bool neg)
{
    for (; op_at(c, r)->kind == OP_NOT; r = arg_at(c, r, 0)) neg = !neg;
    return r * 2 + neg;
}

/* Everything that follows from r = 1 (complemented: r = 0) by taking ANDs (ORs) apart. */
static void collect(const Circuit *c, Ref r, bool neg, Bag *b)
{
    Lit l = lit_of(c, r, neg);
    const Op *op = op_at(c, lit_ref(l));
    if (b->n == MOST || op->kind == OP_CONST) return;
    b->lit[b->n++] = l;
    if (op->kind != (lit_neg(l) ? OP_OR : OP_AND)) return;
    collect(c, arg_at(c, lit_ref(l), 0), lit_neg(l), b);
    collect(c, arg_at(c, lit_ref(l), 1), lit_neg(l), b);
}

static LitSet bag_set(Bag *b)
{
    uint32_t n = 0;
    qsort(b->lit, b->n, sizeof *b->lit, lit_order);
    for (uint32_t i = 0; i < b->n; i++)
        if (!n || b->lit[i] != b->lit[n - 1]) b->lit[n++] = b->lit[i];
    if (!n) return (LitSet){0};
    Lit *copy = xalloc(n * sizeof *copy);
    memcpy(copy, b->lit, n * sizeof *copy);
    return (LitSet){.n = n, .lit = copy};
}

LitSet observe_enabled(const Circuit *c, Ref en)
{
    Bag b = {0};
    collect(c, en, false, &b);
    return bag_set(&b);
}

/* s and what follows from r. */
static LitSet join(const Circuit *c, LitSet s, Ref r, bool neg)
{
    Bag b = {.n = s.n};
    if (s.n) memcpy(b.lit, s.lit, s.n * sizeof *s.lit);
    collect(c, r, neg, &b);
    return bag_set(&b);
}

/* One more use, under s. */
static void meet(Walk *w, Ref r, LitSet s)
{
    LitSet *old = &w->at[r];
    if (old->all) {
        *old = s;
        return;
    }
    Bag b = {0};
    for (uint32_t i = 0; i < old->n; i++)
        if (litset_has(&s, old->lit[i])) b.lit[b.n++] = old->lit[i];
    if (b.n < old->n) *old = bag_set(&b);
}

static void walk_mux(Walk *w, Ref r, LitSet s)
{
    Ref cond = arg_at(w->c, r, 0);
    meet(w, cond, s);
    meet(w, arg_at(w->c, r, 1), join(w->c, s, cond, false));
    meet(w, arg_at(w->c, r, 2), join(w->c, s, cond, true));
}

static void walk_pmux(Walk *w, Ref r, LitSet s)
{
    for (uint32_t i = 0; i < op_at(w->c, r)->nargs; i += 2) {
        Ref cond = arg_at(w->c, r, i);
        meet(w, cond, w->use == OBSERVE_KEEP ? s : (LitSet){0});
        meet(w, arg_at(w->c, r, i + 1), join(w->c, s, cond, false));
    }
}

static void walk_junction(Walk *w, Ref r, LitSet s)
{
    Ref x = arg_at(w->c, r, 0), y = arg_at(w->c, r, 1);
    bool dual = op_at(w->c, r)->kind == OP_OR;
    meet(w, x, w->use == OBSERVE_KEEP ? join(w->c, s, y, dual) : s);
    meet(w, y, join(w->c, s, x, dual));
}

static void walk_op(Walk *w, Ref r)
{
    const Op *op = op_at(w->c, r);
    LitSet s = w->at[r];
    if (s.all) return;
    if (op->kind == OP_MUX) walk_mux(w, r, s);
    else if (op->kind == OP_PMUX) walk_pmux(w, r, s);
    else if (op->width == 1 && (op->kind == OP_AND || op->kind == OP_OR)) walk_junction(w, r, s);
    else
        for (uint32_t i = 0; i < op->nargs; i++) meet(w, arg_at(w->c, r, i), s);
}

LitSet *observe_values(const Circuit *c, ObserveUse use)
{
    Walk w = {.c = c, .use = use, .at = xalloc(c->ops.n * sizeof *w.at)};
    for (Ref r = 0; r < c->ops.n; r++) w.at[r].all = true;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *x = &c->writes.data[i];
        LitSet s = observe_enabled(c, x->en);
        meet(&w, x->en, (LitSet){0});
        meet(&w, x->index, s), meet(&w, x->data, s), meet(&w, x->lanes, s);
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *x = &c->emits.data[i];
        meet(&w, x->en, (LitSet){0});
        meet(&w, x->payload, observe_enabled(c, x->en));
    }
    meet(&w, c->retire, (LitSet){0});
    for (Ref r = c->ops.n; --r > 0;) walk_op(&w, r);
    return w.at;
}
