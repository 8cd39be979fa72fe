/* elaborate_expr.c: expressions to values.
 *
 * Widths flow both ways. `want` is the width that the context would like, 0 if it has no opinion; constants, sext and
 * zext adapt to it, everything else has a width of its own, and whoever needs a certain width checks it with
 * to_bits. */
#include "elaborate.h"
#include <string.h>

static const Val error_val = { .kind = V_ERROR };

Val bits_val(const Elab *e, Ref r)
{
    if (!r) return error_val;
    return (Val){ .kind = V_BITS, .width = op_at(e->c, r)->width, .ref = r };
}

static Val int_val(Big i) { return (Val){ .kind = V_INT, .i = i }; }
static Val flag(const Elab *e, bool b) { return bits_val(e, ir_const(e->c, 1, b)); }

bool val_const(const Elab *e, Val v, Big *value)
{
    uint64_t k;
    if (v.kind == V_INT) {
        *value = v.i;
        return true;
    }
    if (v.kind != V_BITS || !ir_is_const(e->c, v.ref, &k)) return false;
    *value = (Big)k;
    return true;
}

Ref to_bits(Elab *e, Val v, unsigned width, Span at)
{
    switch (v.kind) {
    case V_ERROR: return 0;
    case V_VOID: fail(e, at, "found no value, expected u%u", width); return 0;
    case V_INT:
        if (v.i >= -((Big)1 << (width - 1)) && v.i < (Big)1 << width)
            return ir_const(e->c, width, (uint64_t)v.i & mask64(width));
        fail(e, at, "the number %s does not fit into u%u", big_text(v.i), width);
        return 0;
    case V_WIDEN:
        if (v.width <= width) return v.sign ? ir_sext(e->c, v.ref, width) : ir_zext(e->c, v.ref, width);
        fail(e, at, "%s of a u%u cannot give u%u, which is narrower: take a slice", v.sign ? "sext" : "zext", v.width,
             width);
        return 0;
    case V_BITS: break;
    }
    if (v.width == width) return v.ref;
    fail(e, at, "found u%u, expected u%u: %s", v.width, width,
         v.width < width ? "widen it with zext(..) or sext(..)" : "take a slice [..:..]");
    return 0;
}

Ref eval_bits(Elab *e, const Node *n, unsigned width) { return to_bits(e, eval(e, n, width), width, n->span); }

/* A value whose width must be known by itself. */
static Ref eval_sized(Elab *e, const Node *n, unsigned want)
{
    Val v = eval(e, n, want);
    if (v.kind == V_BITS) return v.ref;
    if (v.kind == V_ERROR) return 0;
    if (want) return to_bits(e, v, want, n->span);
    fail(e, n->span,
         v.kind == V_VOID ? "found no value" : "the width of this value is not known here: write zext(.., WIDTH)");
    return 0;
}

bool unify(Elab *e, Val *v, const Span *at, uint32_t n, unsigned want, unsigned *width)
{
    unsigned w = 0;
    bool good = true;
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].kind == V_ERROR) return false;
        if (v[i].kind == V_BITS && !w) w = v[i].width;
    }
    if (!w) w = want;
    if (!w) {
        fail(e, at[0], "the width of this value is not known here: write zext(.., WIDTH)");
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        Ref r = to_bits(e, v[i], w, at[i]);
        good = good && r;
        v[i] = bits_val(e, r);
    }
    *width = w;
    return good;
}

/* ---- names ---- */
Local *local_find(const Elab *e, const char *name)
{
    for (Local *l = e->frame ? e->frame->locals : NULL; l; l = l->up)
        if (l->name == name) return l;
    return NULL;
}

void local_add(Elab *e, const char *name, Val v, Slot *carry)
{
    Local *l = xalloc(sizeof *l);
    *l = (Local){ e->frame->locals, name, v, carry };
    e->frame->locals = l;
}

static Val eval_name(Elab *e, const Node *n)
{
    if (!n->decl) {
        const Local *l = local_find(e, n->name);
        if (!l) return fail(e, n->span, "the value '%s' is not known here", n->name);
        return l->carry ? bits_val(e, l->carry->now) : l->val;
    }
    if (n->decl->kind == N_CONST || n->decl->kind == N_PARAM) return const_value(e, n->decl);
    Info *s = info_of(e, n->decl);
    return s ? bits_val(e, register_read(e, s)) : error_val;
}

static Val eval_next(Elab *e, const Node *n)
{
    const Local *l = n->a->decl ? NULL : local_find(e, n->a->name);
    if (l && l->carry) return bits_val(e, slot_next(e, l->carry));
    Info *s = n->a->decl ? info_of(e, n->a->decl) : NULL;
    return s ? bits_val(e, register_next(e, s)) : error_val;
}

/* ---- operators ---- */
static Val int_result(Elab *e, Big v, Span at)
{
    if (v > -MAX_CONST && v < MAX_CONST) return int_val(v);
    return fail(e, at, "this constant is beyond 64 bits");
}

static Val int_shift(Elab *e, const Node *n, Big a, Big b)
{
    if (b < 0) return fail(e, n->span, "found a shift by %s", big_text(b));
    if (n->op != B_SHL) return int_val(b > 100 ? (a < 0 ? -1 : 0) : a >> (int)b);
    if (a && b > 64) return fail(e, n->span, "this constant is beyond 64 bits");
    return int_result(e, a ? (Big)((unsigned __int128)a << (int)b) : 0, n->span);
}

/* Both operands are constants without a width: exact integers. */
static Val int_binary(Elab *e, const Node *n, Big a, Big b)
{
    switch (n->op) {
    case B_ADD: return int_result(e, a + b, n->span);
    case B_SUB: return int_result(e, a - b, n->span);
    case B_MUL:
        if (a && b && (a < 0 ? -a : a) > MAX_CONST / (b < 0 ? -b : b))
            return fail(e, n->span, "this constant is beyond 64 bits");
        return int_result(e, a * b, n->span);
    case B_DIV: case B_MOD:
        if (!b) return fail(e, n->span, "found a division by zero");
        return int_val(n->op == B_DIV ? a / b : a % b);
    case B_AND: return int_val(a & b);
    case B_OR: return int_val(a | b);
    case B_XOR: return int_val(a ^ b);
    case B_SHL: case B_SHR: case B_SAR: return int_shift(e, n, a, b);
    case B_EQ: return flag(e, a == b);
    case B_NE: return flag(e, a != b);
    case B_LT: case B_SLT: return flag(e, a < b);
    case B_LE: case B_SLE: return flag(e, a <= b);
    case B_GT: case B_SGT: return flag(e, a > b);
    default: return flag(e, a >= b);
    }
}

/* One row per operator: the netlist op, whether its arguments swap, whether its result is inverted, its result one
 * bit. */
static const struct {
    OpKind kind;
    bool known, swap, invert, flag;
} op_row[B_COUNT] = {
    [B_ADD] = { OP_ADD, 1, 0, 0, 0 }, [B_SUB] = { OP_SUB, 1, 0, 0, 0 }, [B_MUL] = { OP_MUL, 1, 0, 0, 0 },
    [B_AND] = { OP_AND, 1, 0, 0, 0 }, [B_OR] = { OP_OR, 1, 0, 0, 0 },   [B_XOR] = { OP_XOR, 1, 0, 0, 0 },
    [B_EQ] = { OP_EQ, 1, 0, 0, 1 },   [B_NE] = { OP_EQ, 1, 0, 1, 1 },
    [B_LT] = { OP_ULT, 1, 0, 0, 1 },  [B_GT] = { OP_ULT, 1, 1, 0, 1 },
    [B_GE] = { OP_ULT, 1, 0, 1, 1 },  [B_LE] = { OP_ULT, 1, 1, 1, 1 },
    [B_SLT] = { OP_SLT, 1, 0, 0, 1 }, [B_SGT] = { OP_SLT, 1, 1, 0, 1 },
    [B_SGE] = { OP_SLT, 1, 0, 1, 1 }, [B_SLE] = { OP_SLT, 1, 1, 1, 1 },
};

static Ref build_binary(Elab *e, NodeOp op, Ref a, Ref b, Span at)
{
    Ref args[2] = { op_row[op].swap ? b : a, op_row[op].swap ? a : b };
    Ref r = ir_op(e->c, op_row[op].kind, op_row[op].flag ? 1 : op_at(e->c, a)->width, 0, 2, args, at);
    return op_row[op].invert ? ir_not(e->c, r) : r;
}

static Val shift(Elab *e, const Node *n, unsigned want)
{
    Val a = eval(e, n->a, want), b = eval(e, n->b, 0);
    if (a.kind == V_ERROR || b.kind == V_ERROR) return error_val;
    if (a.kind == V_INT && b.kind == V_INT) return int_shift(e, n, a.i, b.i);
    if (b.kind == V_INT && b.i < 0) return fail(e, n->b->span, "found a shift by %s", big_text(b.i));
    if (b.kind == V_INT) b = bits_val(e, ir_const(e->c, 7, b.i > 64 ? 64 : (uint64_t)b.i));
    if (b.kind != V_BITS)
        return fail(e, n->b->span, "the width of the shift amount is not known: write zext(.., WIDTH)");
    if (a.kind != V_BITS) {
        Ref r = want ? to_bits(e, a, want, n->a->span) : 0;
        if (!r) return fail(e, n->a->span, "the width of this value is not known here: write zext(.., WIDTH)");
        a = bits_val(e, r);
    }
    OpKind kind = n->op == B_SHL ? OP_SHL : n->op == B_SHR ? OP_LSHR : OP_ASHR;
    return bits_val(e, ir_op(e->c, kind, a.width, 0, 2, (Ref[]){ a.ref, b.ref }, n->span));
}

/* && and ||: what stands right is only reached when what stands left lets it. */
static Val logic(Elab *e, const Node *n)
{
    Ref a = eval_bits(e, n->a, 1);
    uint64_t k;
    if (!a) return error_val;
    bool both = n->op == B_LAND;
    if (ir_is_const(e->c, a, &k) && (k != 0) != both) return flag(e, k);
    Path *saved = e->path;
    e->path = path_child(e, saved, both ? a : ir_not(e->c, a), 0, 0);
    Ref b = eval_bits(e, n->b, 1);
    e->path = saved;
    if (!b) return error_val;
    return bits_val(e, ir_op(e->c, both ? OP_AND : OP_OR, 1, 0, 2, (Ref[]){ a, b }, n->span));
}

static Val binary(Elab *e, const Node *n, unsigned want)
{
    if (n->op == B_LAND || n->op == B_LOR) return logic(e, n);
    if (n->op == B_SHL || n->op == B_SHR || n->op == B_SAR) return shift(e, n, want);
    bool compare = op_row[n->op].flag;
    unsigned hint = infer(e, n->a);
    if (!hint) hint = infer(e, n->b);
    if (!hint && !compare) hint = want;
    Val v[2] = { eval(e, n->a, hint), { 0 } };
    if (!hint && v[0].kind == V_BITS) hint = v[0].width;
    v[1] = eval(e, n->b, hint);
    if (v[0].kind == V_ERROR || v[1].kind == V_ERROR) return error_val;
    if (v[0].kind == V_INT && v[1].kind == V_INT) return int_binary(e, n, v[0].i, v[1].i);
    if (n->op == B_DIV || n->op == B_MOD)
        return fail(e, n->span, "'%s' is for constants: use a shift, or divide step by step with iterate",
                    node_op_text[n->op]);
    unsigned width;
    const Span at[2] = { n->a->span, n->b->span };
    if (v[0].kind == V_BITS && v[1].kind == V_BITS && v[0].width != v[1].width)
        return fail(e, n->span, "the operands of '%s' are u%u and u%u, expected equal widths", node_op_text[n->op],
                    v[0].width, v[1].width);
    if (!unify(e, v, at, 2, compare ? 0 : want, &width)) return error_val;
    return bits_val(e, build_binary(e, n->op, v[0].ref, v[1].ref, n->span));
}

static Val unary(Elab *e, const Node *n, unsigned want)
{
    if (n->op == B_NEXT) return eval_next(e, n);
    if (n->op == B_NOT) {
        Ref r = eval_bits(e, n->a, 1);
        return r ? bits_val(e, ir_not(e->c, r)) : error_val;
    }
    Val v = eval(e, n->a, want);
    if (v.kind == V_INT) return int_result(e, n->op == B_NEG ? -v.i : ~v.i, n->span);
    if (v.kind == V_ERROR) return v;
    if (v.kind == V_WIDEN && want) v = bits_val(e, to_bits(e, v, want, n->span));
    if (v.kind == V_ERROR) return v;
    if (v.kind != V_BITS)
        return fail(e, n->a->span, "the width of this value is not known here: write zext(.., WIDTH)");
    if (n->op == B_INV) return bits_val(e, ir_op(e->c, OP_NOT, v.width, 0, 1, &v.ref, n->span));
    return bits_val(e, ir_op(e->c, OP_SUB, v.width, 0, 2, (Ref[]){ ir_const(e->c, v.width, 0), v.ref }, n->span));
}

/* ---- slices, bits, rows ---- */
static Val slice(Elab *e, const Node *n)
{
    Big hi, lo;
    Val v = eval(e, n->a, 0);
    if (v.kind == V_ERROR || !eval_const_in(e, n->b, 0, 63, "the high bit", &hi) ||
        !eval_const_in(e, n->c, 0, 63, "the low bit", &lo))
        return error_val;
    if (hi < lo) return fail(e, n->span, "found bits [%d:%d], expected [high:low]", (int)hi, (int)lo);
    unsigned width = (unsigned)(hi - lo) + 1;
    if (v.kind == V_INT) return bits_val(e, ir_const(e->c, width, (uint64_t)(v.i >> (int)lo) & mask64(width)));
    if (v.kind != V_BITS)
        return fail(e, n->a->span, "the width of this value is not known here: write zext(.., WIDTH)");
    if (hi >= v.width) return fail(e, n->span, "found bits [%d:%d] of a u%u", (int)hi, (int)lo, v.width);
    return bits_val(e, ir_op(e->c, OP_SLICE, width, (uint64_t)lo, 1, &v.ref, n->span));
}

static Val bit(Elab *e, const Node *n)
{
    Val v = eval(e, n->a, 0), i = eval(e, n->b, 0);
    if (v.kind == V_ERROR || i.kind == V_ERROR) return error_val;
    Big k;
    bool known = val_const(e, i, &k);
    if (v.kind == V_INT && known)
        return k < 0 ? fail(e, n->b->span, "found bit %s", big_text(k))
                     : flag(e, k > 100 ? v.i < 0 : (v.i >> (int)k) & 1);
    if (v.kind != V_BITS)
        return fail(e, n->a->span, "the width of this value is not known here: write zext(.., WIDTH)");
    if (known && (k < 0 || k >= v.width)) return fail(e, n->span, "found bit %s of a u%u", big_text(k), v.width);
    if (known) return bits_val(e, ir_op(e->c, OP_SLICE, 1, (uint64_t)k, 1, &v.ref, n->span));
    if (i.kind != V_BITS) return fail(e, n->b->span, "the width of the index is not known here: write zext(.., WIDTH)");
    Ref moved = ir_op(e->c, OP_LSHR, v.width, 0, 2, (Ref[]){ v.ref, i.ref }, n->span);
    return bits_val(e, ir_op(e->c, OP_SLICE, 1, 0, 1, &moved, n->span));
}

static Val index_of(Elab *e, const Node *n)
{
    const Node *rows = n->a;
    unsigned view = 0;
    if (rows->kind == N_MEMBER && rows->value) view = (unsigned)rows->value, rows = rows->a;
    if (rows->kind != N_NAME || !rows->decl || (rows->decl->kind != N_FILE && rows->decl->kind != N_MEM))
        return bit(e, n);
    Info *s = info_of(e, rows->decl);
    return s ? rows_read(e, s, view, n->b, n->span) : error_val;
}

/* ---- joining ---- */
static Val join(Elab *e, const Ref *part, uint32_t n, Span at)
{
    unsigned total = 0;
    for (uint32_t i = 0; i < n && total <= 64; i++) {
        if (!part[i]) return error_val;
        total += op_at(e->c, part[i])->width;
    }
    if (total > 64) return fail(e, at, "the joined value has more than 64 bits");
    return bits_val(e, n == 1 ? part[0] : ir_op(e->c, OP_CAT, total, 0, n, part, at));
}

static Val cat(Elab *e, const Node *n)
{
    if (n->list.n > 64) return fail(e, n->span, "the joined value has more than 64 bits");
    Ref part[64];
    bool good = true;
    for (uint32_t i = 0; i < n->list.n; i++) good &= (part[i] = eval_sized(e, n->list.data[i], 0)) != 0;
    return good ? join(e, part, n->list.n, n->span) : error_val;
}

static Val repeat(Elab *e, const Node *n)
{
    Big count;
    Ref part[64];
    if (!eval_const_in(e, n->a, 1, 64, "the number of copies", &count)) return error_val;
    Val v = cat(e, n->b);
    if (v.kind != V_BITS) return v;
    for (int i = 0; i < (int)count; i++) part[i] = v.ref;
    return join(e, part, (uint32_t)count, n->span);
}

/* A balanced tree over terms[0..n). */
static Ref tree(Elab *e, NodeOp op, const Ref *term, uint32_t n, Span at)
{
    if (n == 1) return term[0];
    Ref a = tree(e, op, term, n / 2, at), b = tree(e, op, term + n / 2, n - n / 2, at);
    return build_binary(e, op, a, b, at);
}

static Val reduce(Elab *e, const Node *n, unsigned want)
{
    Big low, high;
    if (!eval_const(e, n->a, &low) || !eval_const(e, n->b, &high)) return error_val;
    if (high <= low || high - low > 64)
        return fail(e, n->span, "found %s terms, expected 1 to 64", big_text(high - low));
    uint32_t count = (uint32_t)(high - low);
    Ref term[64];
    Frame none = { .base = e->path }, *frame = e->frame;
    if (!frame) e->frame = &none;
    Local *mark = e->frame->locals;
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        local_add(e, n->name, int_val(low + i), NULL);
        /* The first term of a concatenation is the lowest. */
        unsigned hint = n->op == B_CONCAT ? 0 : i ? op_at(e->c, term[0])->width : want;
        Ref r = n->op == B_CONCAT ? eval_sized(e, n->c, 0) : i ? eval_bits(e, n->c, hint) : eval_sized(e, n->c, hint);
        term[n->op == B_CONCAT ? count - 1 - i : i] = r;
        good = r != 0;
        e->frame->locals = mark;
    }
    e->frame = frame;
    if (!good) return error_val;
    return n->op == B_CONCAT ? join(e, term, count, n->span) : bits_val(e, tree(e, n->op, term, count, n->span));
}

/* ---- choices ---- */
static Val let_in(Elab *e, const Node *n, unsigned want)
{
    Frame none = { .base = e->path }, *frame = e->frame;
    if (!frame) e->frame = &none;
    Local *mark = e->frame->locals;
    for (uint32_t i = 0; i < n->list.n; i++) {
        const Node *let = n->list.data[i];
        unsigned width = let->a ? type_width(e, let->a) : 0;
        Val v = let->a && !width ? error_val : eval(e, let->b, width);
        local_add(e, let->name, width ? bits_val(e, to_bits(e, v, width, let->b->span)) : v, NULL);
    }
    Val v = eval(e, n->a, want);
    e->frame->locals = mark;
    e->frame = frame;
    return v;
}

static Val eval_under(Elab *e, const Node *n, unsigned want, Ref cond, uint32_t group, uint32_t arm)
{
    Path *saved = e->path;
    e->path = path_child(e, saved, cond, group, arm);
    Val v = eval(e, n, want);
    e->path = saved;
    return v;
}

/* The branch that is taken for certain. Where it adapts to any width, the other branches still say which. */
static Val taken(Elab *e, const Node *n, Node *const *other, uint32_t count, unsigned want)
{
    Val v = eval(e, n, want);
    if (v.kind != V_INT && v.kind != V_WIDEN) return v;
    for (uint32_t i = 0; i < count && !want; i++)
        if (other[i] != n) want = width_untaken(e, other[i]);
    return want ? bits_val(e, to_bits(e, v, want, n->span)) : v;
}

static Val cond(Elab *e, const Node *n, unsigned want)
{
    Ref c = eval_bits(e, n->a, 1);
    uint64_t k;
    if (!c) return error_val;
    if (!want) want = infer(e, n->b);
    if (!want) want = infer(e, n->c);
    if (ir_is_const(e->c, c, &k)) return taken(e, k ? n->b : n->c, k ? &n->c : &n->b, 1, want);
    Val v[2] = { eval_under(e, n->b, want, c, 0, 0), eval_under(e, n->c, want, ir_not(e->c, c), 0, 0) };
    const Span at[2] = { n->b->span, n->c->span };
    unsigned width;
    if (!unify(e, v, at, 2, want, &width)) return error_val;
    return bits_val(e, ir_op(e->c, OP_MUX, width, 0, 3, (Ref[]){ c, v[0].ref, v[1].ref }, n->span));
}

static Val choose(Elab *e, const Node *n, unsigned want)
{
    Arms arms;
    if (!match_arms(e, n, &arms)) return error_val;
    for (uint32_t i = 0; i < n->list.n && !want; i++) want = infer(e, n->list.data[i]->a);
    if (arms.n == 1) {
        Node **body = xalloc(n->list.n * sizeof *body);
        for (uint32_t i = 0; i < n->list.n; i++) body[i] = n->list.data[i]->a;
        return taken(e, arms.arm[0]->a, body, n->list.n, want);
    }
    Val *v = xalloc(arms.n * sizeof *v);
    Span *at = xalloc(arms.n * sizeof *at);
    Ref *val = xalloc(arms.n * sizeof *val);
    for (uint32_t i = 0; i < arms.n; i++) {
        v[i] = eval_under(e, arms.arm[i]->a, want, arms.cond[i], arms.group, i);
        at[i] = arms.arm[i]->a->span;
        if (!want && v[i].kind == V_BITS) want = v[i].width;
    }
    unsigned width;
    if (!unify(e, v, at, arms.n, want, &width)) return error_val;
    for (uint32_t i = 0; i < arms.n; i++) val[i] = v[i].ref;
    return bits_val(e, select_value(e, arms.cond, val, arms.n, width, true));
}

static Val eval_node(Elab *e, const Node *n, unsigned want)
{
    switch (n->kind) {
    case N_INT: return int_val(n->value);
    case N_NAME: return eval_name(e, n);
    case N_MEMBER: return n->decl ? const_value(e, n->decl) : error_val;
    case N_UNARY: return unary(e, n, want);
    case N_BINARY: return binary(e, n, want);
    case N_INDEX: return index_of(e, n);
    case N_SLICE: return slice(e, n);
    case N_CALL: return eval_call(e, n, want);
    case N_COND: return cond(e, n, want);
    case N_CHOOSE: return choose(e, n, want);
    case N_CAT: return cat(e, n);
    case N_REP: return repeat(e, n);
    case N_LETIN: return let_in(e, n, want);
    case N_REDUCE: return reduce(e, n, want);
    default: return error_val;
    }
}

Val eval(Elab *e, const Node *n, unsigned want)
{
    if (!n || !enter_work(e, n->span)) return error_val;
    e->depth++;
    Val v = eval_node(e, n, want);
    e->depth--;
    return v;
}
