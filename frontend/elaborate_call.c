/* elaborate_call.c: calls. A fn or proc is inlined: its parameters become locals of a frame, its body runs under the
 * path of the call, and its returns are selected by the conditions that lead to them inside the frame. */
#include "elaborate.h"
#include <string.h>

static const Val error_val = { .kind = V_ERROR };

Frame *frame_push(Elab *e, const Node *decl, Span call)
{
    Frame *f = xalloc(sizeof *f);
    *f = (Frame){ .up = e->frame, .decl = decl, .call = call, .base = e->path };
    e->frame = f;
    return f;
}

void frame_pop(Elab *e)
{
    e->path = e->frame->base;
    e->frame = e->frame->up;
}

static bool recursive(Elab *e, const Node *callee, Span at)
{
    for (const Frame *f = e->frame; f; f = f->up)
        if (f->decl == callee) {
            fail(e, at, "'%s' calls itself: there is no recursion in a circuit", callee->name);
            return true;
        }
    return false;
}

static Val argument(Elab *e, const Node *formal, const Node *arg)
{
    const Node *type = formal->a;
    if (type->op) { /* const */
        Big k;
        return eval_const(e, arg, &k) ? (Val){ .kind = V_INT, .i = k } : error_val;
    }
    if (!type->value && !type->decl && !type->a) { /* u: any width */
        Val v = eval(e, arg, 0);
        if (v.kind == V_INT || v.kind == V_WIDEN)
            return fail(e, arg->span, "the width of this argument is not known, '%s' takes any: write zext(.., WIDTH)",
                        formal->name);
        return v.kind == V_VOID ? fail(e, arg->span, "found no value") : v;
    }
    unsigned width = type_width(e, type);
    return width ? bits_val(e, eval_bits(e, arg, width)) : error_val;
}

/* The value that the frame returns, selected by the conditions inside the frame. */
static Val returned(Elab *e, Frame *f, unsigned want)
{
    uint32_t n = f->returns.n;
    if (!n) return (Val){ .kind = V_VOID };
    if (n == 1) return f->returns.data[0].val;
    Val *v = xalloc(n * sizeof *v);
    Ref *cond = xalloc(n * sizeof *cond), *val = xalloc(n * sizeof *val);
    Span *spans = xalloc(n * sizeof *spans);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = f->returns.data[i].val;
        spans[i] = f->returns.data[i].span;
        cond[i] = path_since(e, f->returns.data[i].path, f->base);
        if (v[i].kind == V_VOID) return v[i];
    }
    unsigned width;
    if (!unify(e, v, spans, n, f->want ? f->want : want, &width)) return error_val;
    for (uint32_t i = 0; i < n; i++) val[i] = v[i].ref;
    return bits_val(e, select_value(e, cond, val, n, width, true));
}

Val run_body(Elab *e, const Node *g, unsigned want)
{
    Frame *f = e->frame;
    if (g->b->kind != N_BLOCK) {
        Val v = eval(e, g->b, f->want ? f->want : want);
        return f->want ? bits_val(e, to_bits(e, v, f->want, g->b->span)) : v;
    }
    exec_block(e, g->b);
    if (e->stop) return error_val;
    if (e->path && (f->want || g->kind == N_FN))
        return fail(e, g->name_span, "not every way through '%s' returns a value", g->name);
    return returned(e, f, want);
}

static Val inline_call(Elab *e, const Node *n, Node *g, unsigned want)
{
    g->bound = true;
    if (recursive(e, g, n->span)) return error_val;
    uint32_t count = g->list.n;
    Val *args = xalloc((count + 1) * sizeof *args);
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        args[i] = argument(e, g->list.data[i], n->list.data[i]);
        good &= args[i].kind != V_ERROR;
    }
    if (!good) return error_val;
    Frame *f = frame_push(e, g, n->span);
    for (uint32_t i = 0; i < count; i++) local_add(e, g->list.data[i]->name, args[i], NULL);
    f->want = g->a ? type_width(e, g->a) : 0;
    Val v = g->a && !f->want ? error_val : run_body(e, g, want);
    frame_pop(e);
    return v;
}

/* ---- built-in functions ---- */
static Val extend(Elab *e, const Node *n, bool sign, unsigned want)
{
    Val v = eval(e, n->list.data[0], 0);
    Big w = 0;
    if (n->list.n == 2 && !eval_const_in(e, n->list.data[1], 1, 64, "the width", &w)) return error_val;
    if (v.kind == V_ERROR) return v;
    if (v.kind == V_INT) { /* a constant takes the width, or stays as it is */
        if (!w) return v;
        Ref r = to_bits(e, v, (unsigned)w, n->list.data[0]->span);
        return r ? bits_val(e, r) : error_val;
    }
    if (v.kind != V_BITS)
        return fail(e, n->list.data[0]->span, "the width of this value is not known here: write %s(.., WIDTH)",
                    sign ? "sext" : "zext");
    Val wide = { .kind = V_WIDEN, .sign = sign, .width = v.width, .ref = v.ref };
    if (!w) w = want;
    if (!w) return wide;
    Ref r = to_bits(e, wide, (unsigned)w, n->span);
    return r ? bits_val(e, r) : error_val;
}

static Val call_clog2(Elab *e, const Node *n)
{
    Big k;
    if (!eval_const_in(e, n->list.data[0], 1, (Big)UINT64_MAX, "the argument", &k)) return error_val;
    return (Val){ .kind = V_INT, .i = clog2((uint64_t)k) };
}

static Val call_width(Elab *e, const Node *n)
{
    Val v = eval(e, n->list.data[0], 0);
    if (v.kind == V_ERROR) return v;
    if (v.kind != V_BITS) return fail(e, n->list.data[0]->span, "this value has no width of its own");
    return (Val){ .kind = V_INT, .i = v.width };
}

static Val builtin(Elab *e, const Node *n, unsigned want)
{
    const char *name = n->a->name;
    if (!strcmp(name, "clog2")) return call_clog2(e, n);
    if (!strcmp(name, "width")) return call_width(e, n);
    return extend(e, n, !strcmp(name, "sext"), want);
}

Val eval_call(Elab *e, const Node *n, unsigned want)
{
    if (n->a->kind == N_MEMBER) { /* memory.in(address) */
        Info *s = info_of(e, n->a->a->decl);
        return s ? bits_val(e, rows_inside(e, s, n->list.data[0])) : error_val;
    }
    Node *g = n->a->decl;
    if (!g) return builtin(e, n, want);
    if (g->kind == N_FN || g->kind == N_PROC) return inline_call(e, n, g, want);
    unsigned width = type_width(e, g->a);
    Ref r = width ? eval_bits(e, n->list.data[0], width) : 0;
    if (r) emit_device(e, g, r, n->span);
    return (Val){ .kind = V_VOID };
}
