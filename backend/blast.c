/* blast.c: netlist words to literals of the network, in one sweep over the ops that the roots reach. */
#include "backend.h"

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

static void arithmetic(const Blast *b, Ref r, const Op *o, Lit *out)
{
    Lit inv[64];
    switch (o->kind) {
    case OP_ADD: m_add(b->n, o->width, arg(b, r, 0), arg(b, r, 1), LIT0, out, o->span); return;
    case OP_SUB:
        not_all(o->width, arg(b, r, 1), inv);
        m_add(b->n, o->width, arg(b, r, 0), inv, LIT1, out, o->span);
        return;
    case OP_MUL: m_mul(b->n, o->width, arg(b, r, 0), arg(b, r, 1), out, o->span); return;
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

BitMap g_blast(Net *n, const Ref *roots, unsigned nroots, Lit *(*read)(Net *, Ref, BitMap *, void *), void *ctx)
{
    const Circuit *c = n->c;
    bool *live = xalloc(c->ops.n + 1);
    BitMap m = {xalloc(c->ops.n * sizeof *m.bits)};
    Blast b = {n, c, &m, read, ctx};
    mark(c, live, roots, nroots);
    for (Ref r = 1; r < c->ops.n; r++) {
        if (!live[r]) continue;
        Node from = n->nodes.n;
        m.bits[r] = blast_op(&b, r);
        for (Node i = from; i < n->nodes.n; i++)
            if (!n->nodes.data[i].span.line) n->nodes.data[i].span = op_at(c, r)->span;
    }
    return m;
}
