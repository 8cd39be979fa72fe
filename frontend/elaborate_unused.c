/* elaborate_unused.c: functions and procedures that nothing calls are elaborated once with unknown arguments, into a
 * circuit that is thrown away, so that their errors show. Those with parameters of type u or const have no single
 * meaning and are left out. */
#include "elaborate.h"

/* A value of which nothing is known but its width. */
static Val unknown_value(Elab *e, unsigned width)
{
    const char *text = xfmt("unknown.%u", width);
    for (uint32_t i = 0; i < e->c->states.n; i++)
        if (e->c->states.data[i].name == intern(text, __builtin_strlen(text)))
            return bits_val(e, ir_read(e->c, i, 0, (Span){ 0 }));
    State st = {
        .name = intern(text, __builtin_strlen(text)), .kind = ST_REG, .width = width, .lane = width, .rows = 1
    };
    return bits_val(e, ir_read(e->c, vec_push(&e->c->states, st), 0, (Span){ 0 }));
}

static bool concrete(const Node *g)
{
    for (uint32_t i = 0; i < g->list.n; i++) {
        const Node *type = g->list.data[i]->a;
        if (type->op || (!type->value && !type->decl && !type->a)) return false;
    }
    return true;
}

static void check_one(Elab *e, const Node *g)
{
    for (uint32_t i = 0; i < e->infos.n; i++) e->infos.data[i]->slot.effects.n = 0;
    for (uint32_t i = 0; i < e->hidden.n; i++) e->hidden.data[i]->effects.n = 0;
    e->sinks.n = e->loops.n = 0;
    e->path = e->root;
    Frame *f = frame_push(e, g, g->name_span);
    for (uint32_t i = 0; i < g->list.n; i++) {
        unsigned width = type_width(e, g->list.data[i]->a);
        local_add(e, g->list.data[i]->name, width ? unknown_value(e, width) : (Val){ .kind = V_ERROR }, NULL);
    }
    f->want = g->a ? type_width(e, g->a) : 0;
    if (!g->a || f->want) run_body(e, g, 0);
    frame_pop(e);
}

/* Whatever an elaboration has noted in the tree. */
static void forget(const NodeList *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->data[i]->kind != N_FORMAT) list->data[i]->at = 0;
}

void check_unused(Elab *e)
{
    const NodeList *both[] = { &e->p->top, &e->p->members };
    forget(both[0]);
    forget(both[1]);
    declare_states(e);
    instr_table(e);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n && !e->stop; i++) {
            const Node *g = both[k]->data[i];
            if ((g->kind == N_FN || g->kind == N_PROC) && !g->bound && concrete(g)) check_one(e, g);
        }
}
