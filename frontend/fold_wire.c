/* fold_wire.c: the folding rules of SLICE, CAT, ZEXT and SEXT. Canonical wiring: slices only of values that are not
 * wiring themselves (but SEXT for its sign bits), CATs flat, without two neighbours that could be one, and without
 * leading zeros (a ZEXT) or leading extensions (an extension of the CAT). */
#include "ir.h"

static Ref make(Circuit *c, const Request *q, OpKind kind, unsigned width, uint64_t imm, Ref a)
{
    return ir_op(c, kind, width, imm, 1, &a, q->span);
}

/* Bits [lo, lo + w) of a CAT: the parts they touch, the outer ones cut. */
static Ref slice_cat(Circuit *c, const Request *q, Ref a, unsigned lo, unsigned w)
{
    Ref part[64];
    unsigned n = 0, top = op_at(c, a)->width;
    for (unsigned i = 0; i < op_at(c, a)->nargs; i++) {
        Ref p = arg_at(c, a, i);
        unsigned pw = op_at(c, p)->width, base = top - pw;
        unsigned from = lo > base ? lo : base, to = lo + w < top ? lo + w : top;
        if (from < to) part[n++] = make(c, q, OP_SLICE, to - from, from - base, p);
        top = base;
    }
    return n == 1 ? part[0] : ir_op(c, OP_CAT, w, 0, n, part, q->span);
}

static Ref slice_ext(Circuit *c, const Request *q, Ref a, unsigned lo, unsigned w)
{
    OpKind kind = op_at(c, a)->kind;
    Ref x = arg_at(c, a, 0);
    unsigned xw = op_at(c, x)->width;
    if (lo + w <= xw) return make(c, q, OP_SLICE, w, lo, x);
    if (kind == OP_ZEXT) {
        if (lo >= xw) return ir_const(c, w, 0);
        return make(c, q, OP_ZEXT, w, 0, make(c, q, OP_SLICE, xw - lo, lo, x));
    }
    if (lo >= xw) lo = xw - 1;
    return make(c, q, OP_SEXT, w, 0, make(c, q, OP_SLICE, xw - lo, lo, x));
}

/* A selection or bitwise op with a constant operand: the slice goes inwards, since part of it may fold away.
 * (Other operands are left to the `narrow` pass, which knows whether the whole value is needed too.) */
static Ref slice_through(Circuit *c, const Request *q, Ref a)
{
    OpKind kind = op_at(c, a)->kind;
    unsigned first = kind == OP_MUX;
    if (kind != OP_MUX && kind != OP_AND && kind != OP_OR && kind != OP_XOR && kind != OP_NOT) return 0;
    bool any = false;
    Ref args[3] = {0};
    unsigned n = op_at(c, a)->nargs;
    for (unsigned i = 0; i < n; i++) {
        args[i] = arg_at(c, a, i);
        any |= i >= first && op_at(c, args[i])->kind == OP_CONST;
    }
    if (!any) return 0;
    for (unsigned i = first; i < n; i++) args[i] = make(c, q, OP_SLICE, q->width, q->imm, args[i]);
    return ir_op(c, kind, q->width, 0, n, args, q->span);
}

Ref fold_slice(Circuit *c, const Request *q)
{
    Ref a = q->args[0];
    const Op *op = op_at(c, a);
    unsigned lo = (unsigned)q->imm;
    if (q->width == op->width) return a;
    switch (op->kind) {
    case OP_SLICE: return make(c, q, OP_SLICE, q->width, lo + op->imm, arg_at(c, a, 0));
    case OP_CAT: return slice_cat(c, q, a, lo, q->width);
    case OP_ZEXT: case OP_SEXT: return slice_ext(c, q, a, lo, q->width);
    default: return slice_through(c, q, a);
    }
}

/* One value for two neighbours hi, lo: constants, or adjacent slices of one value (the upper one may be sign-extended). */
static Ref join(Circuit *c, const Request *q, Ref hi, Ref lo)
{
    const Op *h = op_at(c, hi), *l = op_at(c, lo);
    unsigned w = h->width + l->width;
    uint64_t hk, lk;
    if (ir_is_const(c, hi, &hk) && ir_is_const(c, lo, &lk)) return ir_const(c, w, hk << l->width | lk);
    if (h->kind == OP_SLICE && l->kind == OP_SLICE && arg_at(c, hi, 0) == arg_at(c, lo, 0) && h->imm == l->imm + l->width)
        return make(c, q, OP_SLICE, w, l->imm, arg_at(c, lo, 0));
    return 0;
}

/* Appends a part to the list part[0..n), highest first, in canonical form. */
static unsigned push_part(Circuit *c, const Request *q, Ref *part, unsigned n, Ref p)
{
    const Op *op = op_at(c, p);
    if (op->kind == OP_CAT) {
        for (unsigned i = 0; i < op_at(c, p)->nargs; i++) n = push_part(c, q, part, n, arg_at(c, p, i));
        return n;
    }
    if (op->kind == OP_ZEXT && n > 0) { /* the first part's extension is left to cat_leading */
        unsigned w = op->width;
        Ref x = arg_at(c, p, 0);
        n = push_part(c, q, part, n, ir_const(c, w - op_at(c, x)->width, 0));
        return push_part(c, q, part, n, x);
    }
    Ref one = n ? join(c, q, part[n - 1], p) : 0;
    if (one) part[n - 1] = one;
    else part[n++] = p;
    return n;
}

/* Leading zeros, a leading extension: the extension of the rest. */
static Ref cat_leading(Circuit *c, const Request *q, Ref *part, unsigned n)
{
    unsigned w0 = op_at(c, part[0])->width;
    OpKind kind = op_at(c, part[0])->kind;
    uint64_t k;
    if (ir_is_const(c, part[0], &k)) {
        unsigned used = 0;
        while (used < w0 && k >> used) used++;
        if (used == w0) return 0;
        if (used == 0) return make(c, q, OP_ZEXT, q->width, 0, ir_op(c, OP_CAT, q->width - w0, 0, n - 1, part + 1, q->span));
        part[0] = ir_const(c, used, k);
        return make(c, q, OP_ZEXT, q->width, 0, ir_op(c, OP_CAT, q->width - (w0 - used), 0, n, part, q->span));
    }
    if (kind != OP_ZEXT && kind != OP_SEXT) return 0;
    part[0] = arg_at(c, part[0], 0);
    unsigned less = w0 - op_at(c, part[0])->width;
    return make(c, q, kind, q->width, 0, ir_op(c, OP_CAT, q->width - less, 0, n, part, q->span));
}

Ref fold_cat(Circuit *c, const Request *q)
{
    Ref part[64]; /* every part has at least one bit */
    unsigned n = 0;
    for (unsigned i = 0; i < q->nargs; i++) n = push_part(c, q, part, n, q->args[i]);
    if (n == 1) return part[0];
    Ref r = cat_leading(c, q, part, n);
    if (r) return r;
    bool same = n == q->nargs;
    for (unsigned i = 0; same && i < n; i++) same = part[i] == q->args[i];
    return same ? 0 : ir_op(c, OP_CAT, q->width, 0, n, part, q->span);
}

Ref fold_zext(Circuit *c, const Request *q)
{
    Ref a = q->args[0];
    const Op *op = op_at(c, a);
    if (q->width == op->width) return a;
    return op->kind == OP_ZEXT ? make(c, q, OP_ZEXT, q->width, 0, arg_at(c, a, 0)) : 0;
}

/* The top bit of a ZEXT that widens is 0, so its sign extension is a ZEXT too. */
Ref fold_sext(Circuit *c, const Request *q)
{
    Ref a = q->args[0];
    const Op *op = op_at(c, a);
    if (q->width == op->width) return a;
    if (op->kind == OP_SEXT || op->kind == OP_ZEXT) return make(c, q, op->kind, q->width, 0, arg_at(c, a, 0));
    return 0;
}
