/* counts.c: which registers advance by the same power of two in every step that the run goes on after.
 *
 * "In every step" is a matter of logic: with a fault handler the advance stands in the step and in the handler, and the enable is an OR of
 * both. So the enable is refuted: no step retires without it, unless a fault ends the run. Unit propagation through the one-bit ANDs, ORs and
 * NOTs, with a few splits; everything else is an unknown. No is always a safe answer. */
#include "modes.h"
#include <string.h>

enum { SPLITS = 4, FREE = 2 };

typedef struct {
    const Circuit *c;
    uint8_t *val; /* per op: 0, 1 or FREE */
    bool bad, moved;
} Logic;

static void set(Logic *l, Ref r, unsigned v)
{
    if (l->val[r] == v) return;
    if (l->val[r] != FREE) l->bad = true;
    l->val[r] = (uint8_t)v;
    l->moved = true;
}

/* An AND of one-bit values; an OR is one of their complements (dual = 1). */
static void propagate_and(Logic *l, Ref r, unsigned dual)
{
    Ref a = arg_at(l->c, r, 0), b = arg_at(l->c, r, 1);
    unsigned yes = !dual, no = dual;
    if (l->val[a] == no || l->val[b] == no) set(l, r, no);
    if (l->val[a] == yes && l->val[b] == yes) set(l, r, yes);
    if (l->val[r] == yes) set(l, a, yes), set(l, b, yes);
    if (l->val[r] == no && l->val[a] == yes) set(l, b, no);
    if (l->val[r] == no && l->val[b] == yes) set(l, a, no);
}

static void propagate(Logic *l)
{
    do {
        l->moved = false;
        for (Ref r = l->c->ops.n; r-- > 1 && !l->bad;) {
            const Op *o = op_at(l->c, r);
            if (o->width != 1) continue;
            uint64_t v;
            if (ir_is_const(l->c, r, &v)) set(l, r, v & 1);
            if (o->kind == OP_AND || o->kind == OP_OR) propagate_and(l, r, o->kind == OP_OR);
            if (o->kind != OP_NOT) continue;
            Ref a = arg_at(l->c, r, 0);
            if (l->val[a] != FREE) set(l, r, !l->val[a]);
            if (l->val[r] != FREE) set(l, a, !l->val[r]);
        }
    } while (l->moved && !l->bad);
}

/* A gate that is decided while its operands are not: its first operand is to be split. */
static Ref open_gate(const Logic *l)
{
    for (Ref r = l->c->ops.n; r-- > 1;) {
        const Op *o = op_at(l->c, r);
        if (o->width != 1 || (o->kind != OP_AND && o->kind != OP_OR) || l->val[r] != (o->kind == OP_OR)) continue;
        Ref a = arg_at(l->c, r, 0), b = arg_at(l->c, r, 1);
        if (l->val[a] == FREE && l->val[b] == FREE) return a;
    }
    return 0;
}

/* True when the values set so far contradict each other. */
static bool refuted(Logic *l, unsigned splits)
{
    propagate(l);
    Ref r = l->bad || !splits ? 0 : open_gate(l);
    if (!r) return l->bad;
    uint8_t *saved = memcpy(xalloc(l->c->ops.n), l->val, l->c->ops.n);
    for (unsigned v = 0; v < 2; v++) {
        memcpy(l->val, saved, l->c->ops.n);
        l->bad = false;
        set(l, r, v);
        if (!refuted(l, splits - 1)) return false;
    }
    return true;
}

static Logic logic_new(const Circuit *c)
{
    return (Logic){.c = c, .val = memset(xalloc(c->ops.n + 1), FREE, c->ops.n)};
}

bool writes_every_step(const Circuit *c, const Write *w)
{
    Logic never = logic_new(c), early = logic_new(c);
    set(&never, w->en, 0);
    if (c->retire) set(&never, c->retire, 1);
    for (uint32_t i = 0; i < c->emits.n; i++)
        if (c->emits.data[i].role == EMIT_FAULT) set(&never, c->emits.data[i].en, 0);
    if (!refuted(&never, SPLITS)) return false;
    if (!c->retire) return true;
    set(&early, w->en, 1);
    set(&early, c->retire, 0);
    return refuted(&early, SPLITS);
}
