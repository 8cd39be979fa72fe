/* flatten.c: a selection whose arm is a selection of its own becomes one selection: PMUX c: PMUX(d: v, e: w), f: x
 * becomes PMUX c&d: v, c&e: w, f: x. The inner one must have no other user, so that nothing is computed twice.
 * Exclusive by construction: what stands under c excludes f because c does, and c&d excludes c&e because d excludes
 * e. (An inner MUX is left alone: in a model it costs less than two more conditions.) */
#include "passes.h"
#include <stdlib.h>

enum {
    MOST_ARMS = 64, /* of the result */
    INNER = 8       /* arms of an inner selection: each costs a condition */
};

static bool is_inner(const Circuit *c, const uint32_t *uses, Ref r)
{
    const Op *op = op_at(c, r);
    return uses[r] == 1 && op->kind == OP_PMUX && op->nargs <= 2 * INNER;
}

static Ref make(Rebuild *b, Ref r, const Ref *args)
{
    const uint32_t *uses = b->ctx;
    const Op *op = op_at(b->from, r);
    if (op->kind != OP_PMUX) return rebuild_op(b, r, args);
    VEC(Ref) arm = {0};
    for (uint32_t i = 0; i < op->nargs; i += 2) {
        Ref inner = arg_at(b->from, r, i + 1);
        bool open = is_inner(b->from, uses, inner) && arm.n / 2 + op->nargs / 2 + INNER <= MOST_ARMS;
        for (uint32_t k = 0; open && k < op_at(b->from, inner)->nargs; k += 2) {
            vec_push(&arm, ir_and(b->to, args[i], b->map[arg_at(b->from, inner, k)]));
            vec_push(&arm, b->map[arg_at(b->from, inner, k + 1)]);
        }
        if (open) continue;
        vec_push(&arm, args[i]);
        vec_push(&arm, args[i + 1]);
    }
    Ref result = ir_op(b->to, OP_PMUX, op->width, 0, arm.n, arm.data, op->span);
    free(arm.data);
    return result;
}

Circuit *pass_flatten(Circuit *c)
{
    Rebuild b = {.from = c, .make = make, .ctx = count_uses(c)};
    return rebuild(&b);
}
