/* assume.c: every value is simplified under what is true whenever it matters (observe.c): an operand that is known
 * becomes a constant, and a condition loses the factors that are known. So the arms of a MUX do not ask again what
 * their condition has answered, and the data of a write do not ask what its enable has.
 *
 * Nothing is copied to be simplified: a value used in two places keeps what only one of them knows. New ops are
 * made only for a condition of its own (one that has no other user) or where one op is enough.
 * Keeps: PMUX conditions exclusive. They may differ from before only where the new ones can be seen to exclude each
 * other. */
#include "passes.h"

enum { DEPTH = 8 };

typedef struct {
    const LitSet *at;
    const uint32_t *uses;
} Facts;

typedef enum { UNKNOWN, ZERO, ONE } Known;

/* Does p, which is true, settle the 1-bit value r? What is put together from others leaves the answer to them. */
static Known settles(const Circuit *c, Lit p, Ref r)
{
    Ref x = lit_ref(p);
    if (op_at(c, x)->kind == OP_AND || op_at(c, x)->kind == OP_OR) return UNKNOWN;
    if (lit_neg(p)) return ir_implies(c, r, x) ? ZERO : UNKNOWN;
    if (ir_implies(c, x, r)) return ONE;
    return ir_exclusive(c, x, r) ? ZERO : UNKNOWN;
}

static Known known_bit(const Circuit *c, const LitSet *s, Ref r)
{
    Lit l = lit_of(c, r, false);
    if (litset_has(s, l)) return ONE;
    if (litset_has(s, l ^ 1)) return ZERO;
    Known k = UNKNOWN;
    for (uint32_t i = 0; i < s->n && !k; i++) k = settles(c, s->lit[i], r);
    return k;
}

/* A wide value that a literal `r == k` settles. */
static bool known_value(const Circuit *c, const LitSet *s, Ref r, uint64_t *k)
{
    for (uint32_t i = 0; i < s->n; i++) {
        Ref x = lit_ref(s->lit[i]);
        if (lit_neg(s->lit[i]) || op_at(c, x)->kind != OP_EQ || arg_at(c, x, 0) != r) continue;
        if (ir_is_const(c, arg_at(c, x, 1), k)) return true;
    }
    return false;
}

/* The value in `to` of the 1-bit value r without what s knows. */
static Ref strip(Rebuild *b, const LitSet *s, Ref r, int depth)
{
    const Circuit *c = b->from;
    const Op *op = op_at(c, r);
    if (op->kind == OP_CONST) return b->map[r];
    Known k = known_bit(c, s, r);
    if (k) return ir_const(b->to, 1, k == ONE);
    bool apart = op->kind == OP_NOT || op->kind == OP_AND || op->kind == OP_OR;
    if (!apart || !depth) return b->map[r];
    Ref args[2] = {0};
    bool same = true;
    for (uint32_t i = 0; i < op->nargs; i++) {
        args[i] = strip(b, s, arg_at(c, r, i), depth - 1);
        same &= args[i] == b->map[arg_at(c, r, i)];
    }
    return same ? b->map[r] : ir_op(b->to, (OpKind)op->kind, 1, 0, op->nargs, args, op->span);
}

/* The argument r of an op that matters under s. */
static Ref simplify(Rebuild *b, const LitSet *s, Ref r)
{
    const Facts *f = b->ctx;
    unsigned width = op_at(b->from, r)->width;
    uint64_t k;
    if (!s->n || !r) return b->map[r];
    if (width > 1) return known_value(b->from, s, r, &k) ? ir_const(b->to, width, k) : b->map[r];
    uint32_t before = b->to->ops.n;
    Ref x = strip(b, s, r, DEPTH);
    return b->to->ops.n > before + 1 && f->uses[r] > 1 ? b->map[r] : x;
}

static bool exclusive_pair(const Circuit *c, Ref x, Ref y)
{
    uint64_t k;
    bool never = (ir_is_const(c, x, &k) && !k) || (ir_is_const(c, y, &k) && !k);
    return never || ir_exclusive(c, x, y);
}

/* Conditions that are 0 under s drop their arm whatever the others are, and one that is 1 decides; other changes
 * need a proof that the new conditions exclude each other. */
static Ref make_pmux(Rebuild *b, Ref r, const Ref *args, Ref *now)
{
    const Op *op = op_at(b->from, r);
    uint64_t k;
    bool proved = true;
    for (uint32_t i = 0; i < op->nargs; i += 2) {
        now[i] = simplify(b, &((const Facts *)b->ctx)->at[r], arg_at(b->from, r, i));
        if (ir_is_const(b->to, now[i], &k) && k) return now[i + 1];
    }
    for (uint32_t i = 0; i < op->nargs; i += 2)
        for (uint32_t j = i + 2; j < op->nargs && proved; j += 2)
            if (now[i] != args[i] || now[j] != args[j]) proved = exclusive_pair(b->to, now[i], now[j]);
    for (uint32_t i = 0; i < op->nargs && !proved; i += 2)
        if (!ir_is_const(b->to, now[i], NULL)) now[i] = args[i];
    return ir_op(b->to, OP_PMUX, op->width, 0, op->nargs, now, op->span);
}

static Ref make(Rebuild *b, Ref r, const Ref *args)
{
    const Op *op = op_at(b->from, r);
    LitSet s = ((const Facts *)b->ctx)->at[r];
    if (s.all || !op->nargs) return rebuild_op(b, r, args);
    Ref small[8], *now = op->nargs <= 8 ? small : xalloc(op->nargs * sizeof *now);
    for (uint32_t i = 0; i < op->nargs; i++) {
        LitSet own = observe_argument(b->from, OBSERVE_SIMPLIFY, s, r, i);
        now[i] = simplify(b, &own, arg_at(b->from, r, i));
    }
    return op->kind == OP_PMUX ? make_pmux(b, r, args, now) : rebuild_op(b, r, now);
}

Circuit *pass_assume(Circuit *c)
{
    Facts f = {observe_values(c, OBSERVE_SIMPLIFY), count_uses(c)};
    Rebuild b = {.from = c, .make = make, .ctx = &f};
    Circuit *d = rebuild(&b);
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        LitSet s = observe_enabled(c, w->en);
        Write *x = &d->writes.data[i];
        x->index = simplify(&b, &s, w->index);
        x->data = simplify(&b, &s, w->data);
        x->lanes = simplify(&b, &s, w->lanes);
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        LitSet s = observe_enabled(c, c->emits.data[i].en);
        d->emits.data[i].payload = simplify(&b, &s, c->emits.data[i].payload);
    }
    return d;
}
