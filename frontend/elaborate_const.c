/* elaborate_const.c: what is known at compile time: constants, parameters, enumerations, widths of types.
 *
 * A constant is evaluated where it is first used, outside every function; Node.at keeps where its value stands. */
#include "elaborate.h"
#include <string.h>

const char *big_text(Big v)
{
    unsigned __int128 u = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
    char text[48], *p = text + sizeof text;
    *--p = 0;
    do *--p = (char)('0' + (int)(u % 10));
    while ((u /= 10) && p > text + 1);
    if (v < 0) *--p = '-';
    return xstrdup(p);
}

/* Evaluates n outside all functions, paths and effects. */
static Val eval_outside(Elab *e, const Node *n, unsigned want)
{
    Frame *frame = e->frame;
    Path *path = e->path;
    bool quiet = e->no_effects;
    e->frame = NULL;
    e->path = e->root;
    e->no_effects = true;
    Val v = eval(e, n, want);
    e->frame = frame;
    e->path = path;
    e->no_effects = quiet;
    return v;
}

bool eval_const(Elab *e, const Node *n, Big *value)
{
    bool quiet = e->no_effects;
    e->no_effects = true;
    Val v = eval(e, n, 0);
    e->no_effects = quiet;
    if (v.kind == V_ERROR) return false;
    if (val_const(e, v, value)) return true;
    fail(e, n->span, "expected a value that is known at compile time");
    return false;
}

bool eval_const_in(Elab *e, const Node *n, Big low, Big high, const char *what, Big *value)
{
    if (!eval_const(e, n, value)) return false;
    if (*value >= low && *value <= high) return true;
    fail(e, n->span, "%s is %s, expected %s to %s", what, big_text(*value), big_text(low), big_text(high));
    return false;
}

/* The value that -D gives to a parameter, if it does. */
static bool defined(Elab *e, const Node *param, Val *v)
{
    for (unsigned i = e->ndefines; i-- > 0;) {
        if (strcmp(e->defines[i].name, param->name)) continue;
        const char *s = e->defines[i].value;
        bool minus = *s == '-';
        Big value = 0;
        if (!literal_value(s + minus, strlen(s + minus), &value))
            *v = fail(e, param->span, "-D %s=%s: expected a number", param->name, s);
        else
            *v = (Val){ .kind = V_INT, .i = minus ? -value : value };
        return true;
    }
    return false;
}

static Val constant(Elab *e, Node *decl)
{
    Val v;
    if (decl->kind == N_PARAM && defined(e, decl, &v)) return v;
    unsigned width = decl->a ? type_width(e, decl->a) : 0;
    if (decl->a && !width) return (Val){ .kind = V_ERROR };
    v = eval_outside(e, decl->b, width);
    Big k;
    if (v.kind == V_ERROR) return v;
    if (!val_const(e, v, &k)) return fail(e, decl->b->span, "expected a value that is known at compile time");
    if (!width)
        return v.kind == V_WIDEN
                   ? fail(e, decl->b->span, "the width is not known, expected a type: const %s : uN", decl->name)
                   : v;
    Ref r = to_bits(e, v, width, decl->b->span);
    return r ? bits_val(e, r) : (Val){ .kind = V_ERROR };
}

/* Values of an enumeration count up from the last explicit one. */
static Big enumerator(Elab *e, Node *decl, uint32_t upto, Big *most)
{
    Big next = 0, result = 0;
    *most = 0;
    for (uint32_t i = 0; i < decl->list.n; i++) {
        const Node *n = decl->list.data[i];
        Big v = next;
        if (n->a && !eval_const_in(e, n->a, 0, (Big)UINT64_MAX, "the value", &v)) v = next;
        if (v > (Big)UINT64_MAX) {
            fail(e, n->span, "the value %s does not fit into u64", big_text(v));
            v = 0;
        }
        if (i == upto) result = v;
        if (v > *most) *most = v;
        next = v + 1;
    }
    return result;
}

static unsigned enum_width(Elab *e, Node *decl)
{
    if (decl->at) return decl->at;
    if (decl->bound) {
        fail(e, decl->span, "the enumeration '%s' is defined by itself", decl->name);
        return 0;
    }
    decl->bound = true;
    Big most;
    enumerator(e, decl, 0, &most);
    unsigned need = most > (Big)(UINT64_MAX - 1) ? 64 : clog2((uint64_t)most + 1), width = decl->a
                                                                                               ? type_width(e, decl->a)
                                                                                           : need ? need
                                                                                                  : 1;
    if (width && width < need) fail(e, decl->span, "the value %s does not fit into u%u", big_text(most), width);
    decl->bound = false;
    return decl->at = width;
}

Val const_value(Elab *e, Node *decl)
{
    if (decl->kind == N_ENUMERATOR) {
        Node *of = decl->decl;
        unsigned width = enum_width(e, of);
        Big most, v = 0;
        if (!width) return (Val){ .kind = V_ERROR };
        for (uint32_t i = 0; i < of->list.n; i++)
            if (of->list.data[i] == decl) v = enumerator(e, of, i, &most);
        return bits_val(e, ir_const(e->c, width, (uint64_t)v & mask64(width)));
    }
    if (decl->at) return e->consts.data[decl->at - 1];
    if (decl->bound) return fail(e, decl->span, "'%s' is defined by itself", decl->name);
    decl->bound = true;
    Val v = constant(e, decl);
    decl->bound = false;
    decl->at = vec_push(&e->consts, v) + 1;
    return v;
}

unsigned type_width(Elab *e, const Node *type)
{
    if (type->kind != N_TYPE) return 0;
    if (type->value) return (unsigned)type->value;
    if (type->decl) return enum_width(e, type->decl);
    Big w;
    return type->a && eval_const_in(e, type->a, 1, 64, "the width", &w) ? (unsigned)w : 0;
}
