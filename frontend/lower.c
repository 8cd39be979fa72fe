/* lower.c: what a memory cannot do, done by logic behind its reads: seeing the write of the same step (`forward` elements that the model
 * cannot write before it reads them), hard-wired rows that are not 0 (a row that was never written reads 0 by itself), and the index of a
 * file or memory of one row (whose key is constant). */
#include "passes.h"

typedef struct {
    const bool *forward; /* per state, or NULL */
    const Write **write; /* per state, NULL: none */
} Lower;

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

static Ref forward_read(Rebuild *b, const State *s, const Write *w, Ref row, Ref old)
{
    Circuit *c = b->to;
    Ref data = ir_lanes(c, rebuild_value(b, w->lanes), s->lane, rebuild_value(b, w->data), old);
    return ir_mux(c, goes_to(b, s, w, row), data, old);
}

static Ref hard_read(Circuit *c, const State *s, Ref row, Ref old)
{
    unsigned width = row ? op_at(c, row)->width : 0;
    Ref there = row ? ir_eq(c, row, ir_const(c, width, s->hard_row)) : ir_const(c, 1, 1);
    return s->hard_row <= mask64(width) ? ir_mux(c, there, ir_const(c, s->width, s->hard_value), old) : old;
}

static bool is_single(const State *s) { return s->rows == 1 && (s->kind == ST_FILE || s->kind == ST_MEM); }

static Ref is_zero(Circuit *c, Ref a) { return ir_eq(c, a, ir_const(c, op_at(c, a)->width, 0)); }

static Ref single_read(Circuit *c, uint32_t state, Ref row, Span span)
{
    Ref only = ir_read(c, state, ir_const(c, op_at(c, row)->width, 0), span);
    return ir_mux(c, is_zero(c, row), only, ir_const(c, op_at(c, only)->width, 0));
}

static Ref make(Rebuild *b, Ref r, const Ref *args)
{
    const Lower *x = b->ctx;
    const Op *op = op_at(b->from, r);
    Ref v = rebuild_op(b, r, args), row = op->nargs ? args[0] : 0;
    if (op->kind != OP_READ || op_at(b->to, v)->kind != OP_READ) return v;
    const State *s = &b->from->states.data[op->imm];
    if (!x->forward && s->has_hard && s->hard_value) return hard_read(b->to, s, row, v);
    if (!x->forward) return is_single(s) ? single_read(b->to, (uint32_t)op->imm, row, op->span) : v;
    return x->forward[op->imm] && x->write[op->imm] ? forward_read(b, s, x->write[op->imm], row, v) : v;
}

static Circuit *lower(Circuit *c, const bool *forward)
{
    Lower x = { forward, xalloc((c->states.n + 1) * sizeof *x.write) };
    for (uint32_t i = 0; i < c->writes.n; i++) x.write[c->writes.data[i].state] = &c->writes.data[i];
    Rebuild b = { .from = c, .make = make, .ctx = &x };
    return rebuild(&b);
}

Circuit *circuit_lower_forward(Circuit *c, const bool *which)
{
    Circuit *to = lower(c, which);
    for (uint32_t s = 0; s < to->states.n; s++)
        if (which[s]) to->states.data[s].forward = false;
    return to;
}

static void single_write(Circuit *c, Write *w)
{
    w->en = ir_and(c, w->en, is_zero(c, w->index));
    w->index = ir_const(c, op_at(c, w->index)->width, 0);
}

Circuit *circuit_lower_rows(Circuit *c)
{
    bool any = false;
    for (uint32_t s = 0; s < c->states.n; s++) {
        const State *st = &c->states.data[s];
        any |= (st->has_hard && st->hard_value) || is_single(st);
    }
    if (!any) return c;
    c = lower(c, NULL);
    for (uint32_t i = 0; i < c->writes.n; i++)
        if (is_single(&c->states.data[c->writes.data[i].state])) single_write(c, &c->writes.data[i]);
    return circuit_optimize(c);
}
