/* elaborate_forward.c: a read of a `forward` file or memory sees the write of the same step, so that write must not
 * depend on such a read. A walk along arguments, and from forward reads to the writes they see, finds every circle. */
#include "elaborate.h"
#include <string.h>

typedef enum { NEW, OPEN, DONE } Mark;
typedef struct {
    Ref op;
    uint32_t next; /* which dependency comes next */
} Visit;

typedef struct {
    const Circuit *c;
    const Write **write; /* of each state, NULL: none or not forward */
    uint8_t *mark;
    VEC(Visit) stack;
} Walk;

/* Dependency number i of an op; 0 behind the last. */
static Ref dependency(const Walk *w, Ref r, uint32_t i)
{
    const Op *op = op_at(w->c, r);
    if (i < op->nargs) return arg_at(w->c, r, i);
    const Write *x = op->kind == OP_READ ? w->write[op->imm] : NULL;
    if (!x) return 0;
    const Ref ref[4] = { x->en, x->index, x->data, x->lanes };
    uint32_t k = i - op->nargs;
    while (k < 4 && !ref[k]) k++; /* absent ones repeat the next, which does no harm */
    return k < 4 ? ref[k] : 0;
}

static void visit(Walk *w, Ref r)
{
    Visit v = { r, 0 };
    w->mark[r] = OPEN;
    vec_push(&w->stack, v);
}

/* The innermost forward read on the circle that ends at `r`, which is open on the stack. */
static Ref forward_read(const Walk *w, Ref r)
{
    for (uint32_t i = w->stack.n; i-- > 0;) {
        const Op *op = op_at(w->c, w->stack.data[i].op);
        if (op->kind == OP_READ && w->write[op->imm]) return w->stack.data[i].op;
        if (w->stack.data[i].op == r) break;
    }
    return r;
}

static Ref find_circle(Walk *w, Ref from)
{
    if (!from || w->mark[from] != NEW) return 0;
    visit(w, from);
    while (w->stack.n) {
        Visit *v = &w->stack.data[w->stack.n - 1];
        Ref d = dependency(w, v->op, v->next++);
        if (!d) w->mark[v->op] = DONE, w->stack.n--;
        else if (w->mark[d] == OPEN) return forward_read(w, d);
        else if (w->mark[d] == NEW) visit(w, d);
    }
    return 0;
}

void check_forward(Elab *e)
{
    const Circuit *c = e->c;
    Walk w = { .c = c, .write = xalloc((c->states.n + 1) * sizeof *w.write), .mark = xalloc(c->ops.n + 1) };
    for (uint32_t i = 0; i < c->writes.n; i++)
        if (c->states.data[c->writes.data[i].state].forward) w.write[c->writes.data[i].state] = &c->writes.data[i];
    for (Ref r = 1; r < c->ops.n; r++) {
        if (op_at(c, r)->kind != OP_READ || !w.write[op_at(c, r)->imm]) continue;
        Ref bad = find_circle(&w, r);
        if (!bad) continue;
        const State *s = &c->states.data[op_at(c, bad)->imm];
        fail(e, op_at(c, bad)->span,
             "'%s' is forward: this read sees the write of the same step, which depends on the read", s->name);
        note_at(w.write[op_at(c, bad)->imm]->span, "the write");
        return;
    }
}
