/* elaborate_infer.c: the width of an expression where it shows without evaluating it, so that a constant left of an
 * operator can adapt to what stands right of it. 0 is always a safe answer: it costs a clearer error at worst. */
#include "elaborate.h"
#include <string.h>

static unsigned width_of(Val v) { return v.kind == V_BITS ? v.width : 0; }

static unsigned infer_name(Elab *e, const Node *n)
{
    if (!n->decl) {
        const Local *l = local_find(e, n->name);
        return !l ? 0 : l->carry ? l->carry->width : width_of(l->val);
    }
    if (n->decl->kind == N_CONST || n->decl->kind == N_PARAM || n->decl->kind == N_ENUMERATOR)
        return width_of(const_value(e, n->decl));
    Info *s = n->decl->kind == N_REG || n->decl->kind == N_INPUT ? info_of(e, n->decl) : NULL;
    return s ? s->elem : 0;
}

static unsigned infer_index(Elab *e, const Node *n)
{
    const Node *rows = n->a;
    if (rows->kind == N_MEMBER && rows->value) return (unsigned)rows->value;
    if (rows->kind != N_NAME || !rows->decl || (rows->decl->kind != N_FILE && rows->decl->kind != N_MEM)) return 1;
    Info *s = info_of(e, rows->decl);
    return s ? s->elem : 0;
}

static unsigned infer_call(Elab *e, const Node *n)
{
    const Node *g = n->a->kind == N_NAME ? n->a->decl : NULL;
    if (n->a->kind == N_MEMBER) return 1;
    if (g) /* a computed width may depend on the parameters */
        return g->a && !g->a->a && (g->kind == N_FN || g->kind == N_PROC) ? type_width(e, g->a) : 0;
    bool widen = n->a->kind == N_NAME && n->list.n == 2 && (!strcmp(n->a->name, "sext") || !strcmp(n->a->name, "zext"));
    const Node *w = widen ? n->list.data[1] : NULL;
    return w && w->kind == N_INT && w->value > 0 && w->value <= 64 ? (unsigned)w->value : 0;
}

static unsigned infer_slice(Elab *e, const Node *n)
{
    Big hi, lo;
    bool mute = e->mute;
    e->mute = true; /* evaluating the slice itself will say what is wrong */
    bool known = eval_const(e, n->b, &hi) && eval_const(e, n->c, &lo);
    e->mute = mute;
    return known && lo >= 0 && hi >= lo && hi < 64 ? (unsigned)(hi - lo) + 1 : 0;
}

static unsigned infer_cat(Elab *e, const Node *n)
{
    unsigned total = 0;
    for (uint32_t i = 0; i < n->list.n; i++) {
        unsigned w = infer(e, n->list.data[i]);
        if (!w || total + w > 64) return 0;
        total += w;
    }
    return total;
}

static unsigned infer_binary(Elab *e, const Node *n)
{
    switch (n->op) {
    case B_ADD: case B_SUB: case B_MUL: case B_AND: case B_OR: case B_XOR: {
        unsigned w = infer(e, n->a);
        return w ? w : infer(e, n->b);
    }
    case B_SHL: case B_SHR: case B_SAR: return infer(e, n->a);
    case B_DIV: case B_MOD: return 0;
    default: return 1;
    }
}

static unsigned infer_arms(Elab *e, const Node *n)
{
    unsigned w = 0;
    for (uint32_t i = 0; i < n->list.n && !w; i++) w = infer(e, n->list.data[i]->a);
    return w;
}

static unsigned infer_node(Elab *e, const Node *n)
{
    switch (n->kind) {
    case N_NAME: case N_MEMBER: return n->kind == N_MEMBER && !n->decl ? 0 : infer_name(e, n);
    case N_UNARY: return n->op == B_NOT ? 1 : infer(e, n->a);
    case N_BINARY: return infer_binary(e, n);
    case N_INDEX: return infer_index(e, n);
    case N_SLICE: return infer_slice(e, n);
    case N_CALL: return infer_call(e, n);
    case N_CAT: return infer_cat(e, n);
    case N_CHOOSE: return infer_arms(e, n);
    case N_COND: {
        unsigned w = infer(e, n->b);
        return w ? w : infer(e, n->c);
    }
    default: return 0;
    }
}

unsigned width_untaken(Elab *e, const Node *n)
{
    bool mute = e->mute, quiet = e->no_effects;
    e->mute = e->no_effects = true;
    Val v = eval(e, n, 0);
    e->mute = mute;
    e->no_effects = quiet;
    return width_of(v);
}

unsigned infer(Elab *e, const Node *n)
{
    if (!n || !enter_work(e, n->span)) return 0;
    e->depth++;
    unsigned w = infer_node(e, n);
    e->depth--;
    return w;
}
