/* elaborate_fault.c: the fault handler. A step that faults has no other effect than those of the handler, which is told the code
 * and the value of the fault: the first one, in the order of their naming. The handler may keep the fault, which then ends the run. */
#include "elaborate.h"

static bool is_fault(const Sink *s) { return s->role == EMIT_FAULT && s->effects.n; }

static bool sinks_exclusive(const Elab *e, const Sink *a, const Sink *b)
{
    for (uint32_t i = 0; i < a->effects.n; i++)
        for (uint32_t j = 0; j < b->effects.n; j++)
            if (!path_exclusive(e, a->effects.data[i].path, b->effects.data[j].path)) return false;
    return true;
}

static Ref value_of(Elab *e, const Sink *s)
{
    Ref *cond = xalloc(s->effects.n * sizeof *cond), *val = xalloc(s->effects.n * sizeof *val);
    for (uint32_t i = 0; i < s->effects.n; i++) {
        cond[i] = s->effects.data[i].path->abs;
        val[i] = s->effects.data[i].data ? s->effects.data[i].data : ir_const(e->c, FAULT_VALUE, 0);
    }
    return select_value(e, cond, val, s->effects.n, FAULT_VALUE, true);
}

void run_handler(Elab *e)
{
    uint32_t n = 0, most = e->sinks.n + 1;
    Ref *happens = xalloc(most * sizeof *happens), *first = xalloc(most * sizeof *first), *code = xalloc(most * sizeof *code),
        *value = xalloc(most * sizeof *value), *before = xalloc(most * sizeof *before);
    const Sink **sink = xalloc(most * sizeof *sink);
    const Node *h = e->p->handler;
    for (uint32_t i = 0; h && i < e->sinks.n; i++) {
        const Sink *s = e->sinks.data[i];
        if (!is_fault(s)) continue;
        uint32_t m = 0;
        happens[n] = effects_enable(e, s->effects.data, s->effects.n);
        for (uint32_t j = 0; j < n; j++)
            if (!sinks_exclusive(e, sink[j], s)) before[m++] = happens[j];
        first[n] = ir_and(e->c, happens[n], ir_not(e->c, any_of(e, before, m)));
        code[n] = ir_const(e->c, FAULT_VALUE, s->code);
        value[n] = value_of(e, s);
        sink[n++] = s;
    }
    if (!n) return;
    Path *all = path_child(e, e->root, any_of(e, happens, n), ++e->groups, 0);
    Ref c = select_value(e, first, code, n, FAULT_VALUE, false), v = select_value(e, first, value, n, FAULT_VALUE, false);
    e->path = e->handling = all;
    frame_push(e, h, h->span);
    local_add(e, h->list.data[0]->name, bits_val(e, c), NULL);
    local_add(e, h->list.data[1]->name, bits_val(e, v), NULL);
    exec_block(e, h->a);
    frame_pop(e);
}

Ref no_fault(Elab *e, const Effect *x)
{
    if (!e->handling || x->fault || path_within(x->path, e->handling)) return ir_const(e->c, 1, 1);
    Ref any = ir_const(e->c, 1, 0);
    bool all = true;
    for (uint32_t i = 0; i < e->sinks.n; i++) {
        const Sink *s = e->sinks.data[i];
        for (uint32_t j = 0; is_fault(s) && j < s->effects.n; j++) {
            const Effect *f = &s->effects.data[j];
            if (path_exclusive(e, f->path, x->path)) all = false;
            else any = ir_or(e->c, any, f->path->abs);
        }
    }
    return ir_not(e->c, all ? e->handling->abs : any);
}
