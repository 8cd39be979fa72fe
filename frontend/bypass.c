/* bypass.c: a forward state made an ordinary one: its reads take the row from this step's write where that goes to the same row. For
 * elements that the model cannot write before it reads them. */
#include "passes.h"

typedef struct {
    const bool *which;   /* per state */
    const Write **write; /* per state, NULL: none */
} Bypass;

/* 1 when the write happens and goes to row `row`. */
static Ref goes_to(Rebuild *b, const State *s, const Write *w, Ref row)
{
    Circuit *c = b->to;
    Ref hit = rebuild_value(b, w->en);
    if (!row) return hit;
    unsigned width = op_at(c, row)->width;
    hit = ir_and(c, hit, ir_eq(c, rebuild_value(b, w->index), row));
    if (s->has_hard && s->hard_row <= mask64(width)) hit = ir_and(c, hit, ir_not(c, ir_eq(c, row, ir_const(c, width, s->hard_row))));
    if (s->rows <= mask64(width)) {
        Ref inside[2] = { row, ir_const(c, width, s->rows) };
        hit = ir_and(c, hit, ir_op(c, OP_ULT, 1, 0, 2, inside, w->span));
    }
    return hit;
}

static Ref make(Rebuild *b, Ref r, const Ref *args)
{
    const Bypass *x = b->ctx;
    const Op *op = op_at(b->from, r);
    Ref old = rebuild_op(b, r, args);
    if (op->kind != OP_READ || !x->which[op->imm] || !x->write[op->imm]) return old;
    const State *s = &b->from->states.data[op->imm];
    const Write *w = x->write[op->imm];
    Ref hit = goes_to(b, s, w, op->nargs ? args[0] : 0);
    return ir_mux(b->to, hit, ir_lanes(b->to, rebuild_value(b, w->lanes), s->lane, rebuild_value(b, w->data), old), old);
}

Circuit *circuit_bypass(Circuit *c, const bool *which)
{
    Bypass x = { which, xalloc((c->states.n + 1) * sizeof *x.write) };
    for (uint32_t i = 0; i < c->writes.n; i++) x.write[c->writes.data[i].state] = &c->writes.data[i];
    Rebuild b = { .from = c, .make = make, .ctx = &x };
    Circuit *to = rebuild(&b);
    for (uint32_t s = 0; s < to->states.n; s++)
        if (which[s]) to->states.data[s].forward = false;
    return to;
}
