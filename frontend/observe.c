/* observe.c: for every value a set of literals that are all true whenever it matters.
 *
 * Walks from the users down: the operands of a write or emit matter under its enable, an arm of a MUX or PMUX under
 * its condition, one side of a 1-bit AND (OR) while the other side is 1 (0). A value with several users matters
 * under what is common to all. Sets that grow too large lose members: less is known then, nothing wrong.
 *
 * OBSERVE_IDLE is OBSERVE_KEEP that also takes what both sides of an OR share. The two other uses differ where two operands could excuse each other. OBSERVE_KEEP takes both sides of an AND, so
 * whoever uses it may rely only on literals that his own change leaves alone. OBSERVE_SIMPLIFY lets only the older
 * side speak for the newer one, and says nothing of the conditions of a PMUX: then every value may be simplified
 * under its set at the same time, because the literal that excuses a change is kept by the user that it was taken
 * from, and PMUX conditions stay exact (and exclusive). */
#include "passes.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, OR_LEVELS = 6 };

typedef struct {
    uint32_t n;
    Lit lit[MOST];
} Bag;

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

static void collect(const Circuit *c, Ref r, bool neg, Bag *b, unsigned ors);

/* What follows from both sides of an OR (complemented: of an AND). */
static void collect_common(const Circuit *c, Ref r, bool neg, Bag *b, unsigned ors)
{
    Bag x = {0}, y = {0};
    collect(c, arg_at(c, r, 0), neg, &x, ors - 1);
    collect(c, arg_at(c, r, 1), neg, &y, ors - 1);
    for (uint32_t i = 0; i < x.n && b->n < MOST; i++)
        for (uint32_t j = 0; j < y.n; j++)
            if (x.lit[i] == y.lit[j]) {
                b->lit[b->n++] = x.lit[i];
                break;
            }
}

/* Everything that follows from r = 1 (complemented: r = 0) by taking ANDs (ORs) apart; and, while `ors` allows, from both sides of the others. */
static void collect(const Circuit *c, Ref r, bool neg, Bag *b, unsigned ors)
{
    Lit l = lit_of(c, r, neg);
    const Op *op = op_at(c, lit_ref(l));
    if (b->n == MOST || op->kind == OP_CONST) return;
    b->lit[b->n++] = l;
    if (op->kind == (lit_neg(l) ? OP_OR : OP_AND)) {
        collect(c, arg_at(c, lit_ref(l), 0), lit_neg(l), b, ors);
        collect(c, arg_at(c, lit_ref(l), 1), lit_neg(l), b, ors);
    } else if (ors && op->kind == (lit_neg(l) ? OP_AND : OP_OR)) collect_common(c, lit_ref(l), lit_neg(l), b, ors);
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

static unsigned ors_for(ObserveUse use) { return use == OBSERVE_IDLE ? OR_LEVELS : 0; }

static LitSet enabled(const Circuit *c, ObserveUse use, Ref en)
{
    Bag b = {0};
    collect(c, en, false, &b, ors_for(use));
    return bag_set(&b);
}

LitSet observe_enabled(const Circuit *c, Ref en) { return enabled(c, OBSERVE_KEEP, en); }

/* s and what follows from r. */
static LitSet join(const Circuit *c, ObserveUse use, LitSet s, Ref r, bool neg)
{
    Bag b = {.n = s.n};
    if (s.n) memcpy(b.lit, s.lit, s.n * sizeof *s.lit);
    collect(c, r, neg, &b, ors_for(use));
    return bag_set(&b);
}

/* One more use, under s, of a value that mattered under *old. */
static void meet(LitSet *old, LitSet s)
{
    if (old->all) {
        *old = s;
        return;
    }
    Bag b = {0};
    for (uint32_t i = 0; i < old->n; i++)
        if (litset_has(&s, old->lit[i])) b.lit[b.n++] = old->lit[i];
    if (b.n < old->n) *old = bag_set(&b);
}

LitSet observe_argument(const Circuit *c, ObserveUse use, LitSet s, Ref r, uint32_t i)
{
    const Op *op = op_at(c, r);
    bool junction = op->width == 1 && (op->kind == OP_AND || op->kind == OP_OR);
    if (op->kind == OP_MUX && i > 0) return join(c, use, s, arg_at(c, r, 0), i == 2);
    if (op->kind == OP_PMUX && i % 2) return join(c, use, s, arg_at(c, r, i - 1), false);
    if (op->kind == OP_PMUX && use == OBSERVE_SIMPLIFY) return (LitSet){0};
    if (junction && (i == 1 || use != OBSERVE_SIMPLIFY)) return join(c, use, s, arg_at(c, r, !i), op->kind == OP_OR);
    return s;
}

LitSet *observe_values(const Circuit *c, ObserveUse use)
{
    LitSet *at = xalloc(c->ops.n * sizeof *at);
    for (Ref r = 0; r < c->ops.n; r++) at[r].all = true;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *x = &c->writes.data[i];
        LitSet s = enabled(c, use, x->en);
        meet(&at[x->en], (LitSet){0});
        meet(&at[x->index], s), meet(&at[x->data], s), meet(&at[x->lanes], s);
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *x = &c->emits.data[i];
        meet(&at[x->en], (LitSet){0});
        meet(&at[x->payload], enabled(c, use, x->en));
    }
    meet(&at[c->retire], (LitSet){0});
    for (Ref r = c->ops.n; --r > 0;)
        for (uint32_t i = 0; i < op_at(c, r)->nargs && !at[r].all; i++)
            meet(&at[arg_at(c, r, i)], observe_argument(c, use, at[r], r, i));
    return at;
}
