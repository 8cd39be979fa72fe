/* rebuild.c: a circuit made again in a fresh one. Every op goes through ir_op, so what a pass has changed below it
 * can fold, and equal values become one. Order is kept: a value's number only grows with that of the old one where
 * nothing folds. */
#include "passes.h"

Ref rebuild_op(Rebuild *b, Ref r, const Ref *args)
{
    const Op *op = op_at(b->from, r);
    return ir_op(b->to, (OpKind)op->kind, op->width, op->imm, op->nargs, args, op->span);
}

Ref rebuild_value(Rebuild *b, Ref r)
{
    if (b->map[r] || !r) return b->map[r];
    uint32_t n = op_at(b->from, r)->nargs;
    Ref small[8], *args = n <= 8 ? small : xalloc(n * sizeof *args);
    for (uint32_t i = 0; i < n; i++) args[i] = rebuild_value(b, arg_at(b->from, r, i));
    return b->map[r] = b->make ? b->make(b, r, args) : rebuild_op(b, r, args);
}

Circuit *rebuild(Rebuild *b)
{
    const Circuit *c = b->from;
    b->to = circuit_like(c);
    b->map = xalloc(c->ops.n * sizeof *b->map);
    for (Ref r = 1; r < c->ops.n; r++)
        if (!b->keep || b->keep[r]) rebuild_value(b, r);
    for (uint32_t i = 0; i < c->writes.n; i++) {
        Write w = c->writes.data[i];
        w.en = b->map[w.en], w.index = b->map[w.index], w.data = b->map[w.data], w.lanes = b->map[w.lanes];
        vec_push(&b->to->writes, w);
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        Emit e = c->emits.data[i];
        e.en = b->map[e.en], e.payload = b->map[e.payload];
        vec_push(&b->to->emits, e);
    }
    b->to->retire = b->map[c->retire];
    return b->to;
}

uint32_t *count_uses(const Circuit *c)
{
    uint32_t *uses = xalloc(c->ops.n * sizeof *uses);
    for (uint32_t i = 0; i < c->args.n; i++) uses[c->args.data[i]]++;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        uses[w->en]++, uses[w->index]++, uses[w->data]++, uses[w->lanes]++;
    }
    for (uint32_t i = 0; i < c->emits.n; i++) uses[c->emits.data[i].en]++, uses[c->emits.data[i].payload]++;
    uses[c->retire]++;
    return uses;
}

static bool same_op(const Circuit *a, const Circuit *b, Ref r)
{
    const Op *x = op_at(a, r), *y = op_at(b, r);
    if (x->kind != y->kind || x->width != y->width || x->imm != y->imm || x->nargs != y->nargs) return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (arg_at(a, r, i) != arg_at(b, r, i)) return false;
    return true;
}

static bool same_write(const Write *x, const Write *y)
{
    return x->state == y->state && x->en == y->en && x->index == y->index && x->data == y->data && x->lanes == y->lanes;
}

static bool same_emit(const Emit *x, const Emit *y)
{
    return x->role == y->role && x->name == y->name && x->state == y->state && x->en == y->en &&
           x->payload == y->payload;
}

bool circuit_same(const Circuit *a, const Circuit *b)
{
    bool same = a->ops.n == b->ops.n && a->writes.n == b->writes.n && a->emits.n == b->emits.n;
    same = same && a->retire == b->retire;
    for (Ref r = 1; same && r < a->ops.n; r++) same = same_op(a, b, r);
    for (uint32_t i = 0; same && i < a->writes.n; i++) same = same_write(&a->writes.data[i], &b->writes.data[i]);
    for (uint32_t i = 0; same && i < a->emits.n; i++) same = same_emit(&a->emits.data[i], &b->emits.data[i]);
    return same;
}
