/* share.c: a&x | b&x becomes (a|b) & x, for conditions: what all alternatives share stands once and outside, where
 * the user of the condition may know it already (assume.c). The two conjunctions must have no other user. */
#include "passes.h"

enum { MOST = 16 };

/* The factors of a conjunction; 0 when there are more than fit. */
static unsigned factors(const Circuit *c, Ref r, Ref *out, unsigned n)
{
    if (op_at(c, r)->kind == OP_AND) {
        n = factors(c, arg_at(c, r, 0), out, n);
        return n ? factors(c, arg_at(c, r, 1), out, n) : 0;
    }
    if (n == MOST) return 0;
    out[n] = r;
    return n + 1;
}

static bool holds(const Ref *list, unsigned n, Ref r)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i] == r) return true;
    return false;
}

/* The conjunction of the factors in x that are, or for `in` = false are not, in y. */
static Ref conjunction(Circuit *c, const Ref *x, unsigned n, const Ref *y, unsigned m, bool in)
{
    Ref r = ir_const(c, 1, 1);
    for (unsigned i = 0; i < n; i++)
        if (holds(y, m, x[i]) == in) r = ir_and(c, r, x[i]);
    return r;
}

static Ref make(Rebuild *b, Ref r, const Ref *args)
{
    const uint32_t *uses = b->ctx;
    const Op *op = op_at(b->from, r);
    if (op->kind != OP_OR || op->width > 1) return rebuild_op(b, r, args);
    if (uses[arg_at(b->from, r, 0)] > 1 || uses[arg_at(b->from, r, 1)] > 1) return rebuild_op(b, r, args);
    Circuit *c = b->to;
    Ref x[MOST], y[MOST];
    unsigned n = factors(c, args[0], x, 0), m = factors(c, args[1], y, 0), common = 0;
    for (unsigned i = 0; i < n; i++) common += holds(y, m, x[i]);
    if (!common) return rebuild_op(b, r, args);
    Ref rest = ir_or(c, conjunction(c, x, n, y, m, false), conjunction(c, y, m, x, n, false));
    return ir_and(c, conjunction(c, x, n, y, m, true), rest);
}

Circuit *pass_share(Circuit *c)
{
    Rebuild b = {.from = c, .make = make, .ctx = count_uses(c)};
    return rebuild(&b);
}
