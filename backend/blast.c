/* blast.c: netlist words to literals of the network, in one sweep over the ops that the roots reach. */
#include "macros.h"
#include <stdlib.h>

static void mark(const Circuit *c, bool *live, const Ref *roots, unsigned nroots)
{
    for (unsigned i = 0; i < nroots; i++) live[roots[i]] = true;
    for (Ref r = c->ops.n; r-- > 1;)
        for (uint32_t k = 0; live[r] && k < op_at(c, r)->nargs; k++) live[arg_at(c, r, k)] = true;
    live[0] = false;
}

typedef struct {
    Net *n;
    const Circuit *c;
    BitMap *m;
    Lit *(*read)(Net *, Ref, BitMap *, void *);
    void *ctx;
    bool *product; /* per op: a MUL, or a sum with one in it, or a sum of sums */
    const struct Idle *idle;
} Blast;

static Lit *arg(const Blast *b, Ref r, unsigned i) { return b->m->bits[arg_at(b->c, r, i)]; }
static unsigned arg_width(const Blast *b, Ref r, unsigned i) { return op_at(b->c, arg_at(b->c, r, i))->width; }

static void not_all(unsigned w, const Lit *a, Lit *out)
{
    for (unsigned i = 0; i < w; i++) out[i] = lit_not(a[i]);
}

static void bitwise(const Blast *b, Ref r, const Op *o, Lit *out)
{
    Net *n = b->n;
    for (unsigned i = 0; i < o->width; i++) {
        Lit x = arg(b, r, 0)[i], y = arg(b, r, 1)[i];
        out[i] = o->kind == OP_AND ? g_and(n, x, y) : o->kind == OP_OR ? g_or(n, x, y) : g_xor(n, x, y);
    }
}

static void select_bits(const Blast *b, Ref r, const Op *o, Lit *out)
{
    if (o->kind == OP_MUX) {
        for (unsigned i = 0; i < o->width; i++) out[i] = g_mux(b->n, arg(b, r, 0)[0], arg(b, r, 1)[i], arg(b, r, 2)[i]);
        return;
    }
    Lit *cv = xalloc(o->nargs * sizeof *cv + 1);
    for (unsigned i = 0; i < o->width; i++) {
        for (uint32_t k = 0; k < o->nargs; k += 2) {
            cv[k] = arg(b, r, k)[0];
            cv[k + 1] = arg(b, r, k + 1)[i];
        }
        out[i] = g_psum(b->n, cv, o->nargs / 2);
    }
}

static Lit compare(const Blast *b, Ref r, const Op *o)
{
    unsigned w = arg_width(b, r, 0);
    Lit *x = arg(b, r, 0), *y = arg(b, r, 1);
    if (o->kind == OP_ULT) return m_less(b->n, w, x, y, o->span);
    if (o->kind == OP_SLT) { /* flip the signs: unsigned order */
        Lit fx[64], fy[64];
        for (unsigned i = 0; i < w; i++) fx[i] = x[i] ^ (i == w - 1), fy[i] = y[i] ^ (i == w - 1);
        return m_less(b->n, w, fx, fy, o->span);
    }
    for (unsigned k = 0; k < 2; k++) { /* (p + q) == t with t no constant: no need to wait for the sum */
        Ref s = arg_at(b->c, r, k), t = arg_at(b->c, r, 1 - k);
        if (op_at(b->c, s)->kind == OP_ADD && op_at(b->c, t)->kind != OP_CONST && op_at(b->c, t)->kind != OP_ADD)
            return m_sum_equal(b->n, w, arg(b, s, 0), arg(b, s, 1), b->m->bits[t], o->span);
    }
    return m_equal(b->n, w, x, y, o->span);
}

/* ---- sums with products: one carry chain for all of their terms ---- */

enum { MOST_TERMS = 12, WIDE = 8 /* bits of a sum that is worth a gate */ };

static bool is_sum(OpKind k) { return k == OP_ADD || k == OP_SUB; }

/* r = s ? -y : y as `if s { -y } else { y }` writes it: y, and s or its complement. */
static bool is_signed_by(const Blast *b, Ref r, Ref *y, Lit *s)
{
    const Circuit *c = b->c;
    if (op_at(c, r)->kind != OP_MUX) return false;
    for (unsigned k = 1; k <= 2; k++) {
        Ref neg = arg_at(c, r, k), pos = arg_at(c, r, 3 - k);
        uint64_t zero;
        if (op_at(c, neg)->kind != OP_SUB || arg_at(c, neg, 1) != pos || !ir_is_const(c, arg_at(c, neg, 0), &zero) || zero) continue;
        *y = pos;
        *s = b->m->bits[arg_at(c, r, 0)][0] ^ (k == 2);
        return true;
    }
    return false;
}

typedef VEC(SumTerm) Terms;

static void collect_terms(const Blast *b, Ref r, Lit s, Terms *t)
{
    const Circuit *c = b->c;
    OpKind k = (OpKind)op_at(c, r)->kind;
    Lit own = LIT0;
    if (is_sum(k) && t->n < MOST_TERMS) {
        collect_terms(b, arg_at(c, r, 0), s, t);
        collect_terms(b, arg_at(c, r, 1), k == OP_SUB ? lit_not(s) : s, t);
    } else if (k == OP_MUL) {
        Ref x = arg_at(c, r, 0), y = arg_at(c, r, 1);
        if (is_signed_by(b, x, &x, &own)) x ^= y, y ^= x, x ^= y;
        else is_signed_by(b, y, &y, &own);
        vec_push(t, ((SumTerm){b->m->bits[x], b->m->bits[y], own ^ s, LIT1}));
    } else {
        is_signed_by(b, r, &r, &own);
        vec_push(t, ((SumTerm){NULL, b->m->bits[r], own ^ s, LIT1}));
    }
}

/* ---- sums of few values: a table of the number ---- */

enum { MOST_COUNT = 64 };

/* Adds the word r to l, sums taken apart. False when l may exceed MOST_COUNT, or the sum its own width. */
static bool count_terms(const Blast *b, Ref r, Lin *l)
{
    const Op *o = op_at(b->c, r);
    if (o->kind == OP_ADD) return count_terms(b, arg_at(b->c, r, 0), l) && count_terms(b, arg_at(b->c, r, 1), l);
    int64_t lo = 0, hi = 0;
    for (unsigned i = 0; i < o->width; i++) {
        if (b->m->bits[r][i] == LIT0) continue;
        if (i > clog2(MOST_COUNT)) return false;
        *l = lin_add(*l, lin_lit(b->m->bits[r][i]), 1 << i);
    }
    lin_range(b->n, *l, &lo, &hi);
    return hi <= MOST_COUNT;
}

static int fn_bit(int v, int i) { return v >> i & 1; }

/* A sum of small values in one level: how many bits of 32 are set, say. */
static bool small_sum(const Blast *b, Ref r, const Op *o, Lit *out)
{
    Lin l = lin_const(0);
    int64_t lo, hi;
    if (o->kind != OP_ADD || !count_terms(b, r, &l)) return false;
    lin_range(b->n, l, &lo, &hi);
    if (o->width < 63 && hi >= 1ll << o->width) return false;
    for (unsigned i = 0; i < o->width; i++) out[i] = hi >> i ? m_table_bit(b->n, l, fn_bit, (int)i, o->span) : LIT0;
    return true;
}

static void arithmetic(const Blast *b, Ref r, const Op *o, Lit *out)
{
    Lit inv[64];
    if (small_sum(b, r, o, out)) return;
    if (b->product[r]) {
        Terms t = {0};
        collect_terms(b, r, LIT0, &t);
        const Lit *by[2 * MOST_TERMS + 4];
        for (uint32_t i = 0; i < t.n; i++) by[2 * i] = t.data[i].a, by[2 * i + 1] = t.data[i].y;
        Lit gate = idle_gate(b->n, b->idle, r, b->m->bits, by, 2 * t.n, o->width, false);
        for (uint32_t i = 0; i < t.n; i++) t.data[i].gate = gate;
        m_sum(b->n, o->width, t.data, t.n, out, o->span);
        free(t.data);
        return;
    }
    Lit gate = is_sum((OpKind)o->kind) && o->width >= WIDE ? idle_gate(b->n, b->idle, r, b->m->bits, (const Lit *[]){arg(b, r, 0), arg(b, r, 1)}, 2, o->width, true) : LIT1;
    switch (o->kind) {
    case OP_ADD: m_add(b->n, o->width, arg(b, r, 0), arg(b, r, 1), LIT0, gate, out, o->span); return;
    case OP_SUB:
        not_all(o->width, arg(b, r, 1), inv);
        m_add(b->n, o->width, arg(b, r, 0), inv, LIT1, gate, out, o->span);
        return;
    default: m_shift(b->n, o->width, arg(b, r, 0), arg_width(b, r, 1), arg(b, r, 1), o->kind, out);
    }
}

static void rewire(const Blast *b, Ref r, const Op *o, Lit *out)
{
    unsigned at = 0;
    switch (o->kind) {
    case OP_CAT:
        for (uint32_t k = o->nargs; k-- > 0;)
            for (unsigned i = 0; i < arg_width(b, r, k); i++) out[at++] = arg(b, r, k)[i];
        return;
    case OP_SLICE:
        for (unsigned i = 0; i < o->width; i++) out[i] = arg(b, r, 0)[o->imm + i];
        return;
    default:
        for (unsigned i = 0, w = arg_width(b, r, 0); i < o->width; i++)
            out[i] = i < w ? arg(b, r, 0)[i] : o->kind == OP_SEXT ? arg(b, r, 0)[w - 1] : LIT0;
    }
}

static Lit *blast_op(const Blast *b, Ref r)
{
    const Op *o = op_at(b->c, r);
    if (o->kind == OP_READ) return b->read(b->n, r, b->m, b->ctx);
    Lit *out = xalloc(o->width * sizeof *out);
    switch (o->kind) {
    case OP_CONST:
        for (unsigned i = 0; i < o->width; i++) out[i] = o->imm >> i & 1 ? LIT1 : LIT0;
        break;
    case OP_TOKEN: out[0] = g_input(b->n, N_TOKEN, (uint32_t)o->imm, 0, 0, 1) * 2; break;
    case OP_AND: case OP_OR: case OP_XOR: bitwise(b, r, o, out); break;
    case OP_NOT: not_all(o->width, arg(b, r, 0), out); break;
    case OP_MUX: case OP_PMUX: select_bits(b, r, o, out); break;
    case OP_EQ: case OP_ULT: case OP_SLT: out[0] = compare(b, r, o); break;
    case OP_CAT: case OP_SLICE: case OP_ZEXT: case OP_SEXT: rewire(b, r, o, out); break;
    default: arithmetic(b, r, o, out);
    }
    return out;
}

/* As a term of a sum, is it better taken apart? */
static bool joins(const Blast *b, Ref r)
{
    const Op *o = op_at(b->c, r);
    return b->product[r] || (is_sum((OpKind)o->kind) && o->width >= WIDE);
}

BitMap g_blast(Net *n, const Ref *roots, unsigned nroots, Lit *(*read)(Net *, Ref, BitMap *, void *), void *ctx, const struct Idle *idle)
{
    const Circuit *c = n->c;
    bool *live = xalloc(c->ops.n + 1);
    BitMap m = {xalloc(c->ops.n * sizeof *m.bits)};
    Blast b = {n, c, &m, read, ctx, xalloc(c->ops.n), idle};
    mark(c, live, roots, nroots);
    for (Ref r = 1; r < c->ops.n; r++) {
        if (!live[r]) continue;
        Node from = n->nodes.n;
        OpKind k = (OpKind)op_at(c, r)->kind;
        b.product[r] = k == OP_MUL || (is_sum(k) && (joins(&b, arg_at(c, r, 0)) || joins(&b, arg_at(c, r, 1))));
        m.bits[r] = blast_op(&b, r);
        for (Node i = from; i < n->nodes.n; i++)
            if (!n->nodes.data[i].span.line) n->nodes.data[i].span = op_at(c, r)->span;
    }
    return m;
}
