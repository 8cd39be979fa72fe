/* care.c: what a write or emit carries matters only while it is enabled, so its operands are simplified under that assumption: the guards of an
 * enable (this address is inside, this step is no refill) need not be tested again in the data, the lane mask or the row number, which
 * are then ready earlier. Keeps: the value of every write and emit while enabled. PMUX arms stay provably exclusive. */
#include "modes.h"

typedef struct {
    Circuit *c;
    Ref lit[64]; /* 1-bit values known to be 1 */
    unsigned n;
    unsigned budget; /* ops still to be visited */
} Care;

static void known_lits(Care *k, Ref r)
{
    const Op o = *op_at(k->c, r);
    if (o.kind == OP_AND && o.width == 1) {
        known_lits(k, arg_at(k->c, r, 0));
        known_lits(k, arg_at(k->c, r, 1));
    } else if (k->n < 64) k->lit[k->n++] = r;
}

static Ref under(Care *k, Ref r);

/* Conditions without what is known; the PMUX as it was where that would lose its exclusivity. */
static Ref under_pmux(Care *k, Ref r)
{
    Circuit *c = k->c;
    const Op o = *op_at(c, r);
    Ref *a = xalloc(o.nargs * sizeof *a);
    for (uint32_t i = 0; i < o.nargs; i++) a[i] = under(k, arg_at(c, r, i));
    for (uint32_t i = 0; i < o.nargs; i += 2)
        for (uint32_t j = i + 2; j < o.nargs; j += 2) {
            uint64_t v;
            if ((ir_is_const(c, a[i], &v) && !v) || (ir_is_const(c, a[j], &v) && !v)) continue;
            if (!ir_exclusive(c, a[i], a[j])) return r;
        }
    return ir_op(c, OP_PMUX, o.width, 0, o.nargs, a, o.span);
}

/* The op again, over simplified operands. */
static Ref under_all(Care *k, Ref r)
{
    const Op o = *op_at(k->c, r);
    Ref *a = xalloc(o.nargs * sizeof *a + 1);
    for (uint32_t i = 0; i < o.nargs; i++) a[i] = under(k, arg_at(k->c, r, i));
    return ir_op(k->c, (OpKind)o.kind, o.width, o.imm, o.nargs, a, o.span);
}

static Ref under(Care *k, Ref r)
{
    Circuit *c = k->c;
    const Op o = *op_at(c, r);
    if (o.width == 1)
        for (unsigned i = 0; i < k->n; i++) {
            if (k->lit[i] == r) return ir_const(c, 1, 1);
            if (k->lit[i] == ir_not(c, r)) return ir_const(c, 1, 0);
        }
    if (!k->budget) return r;
    k->budget--;
    switch (o.kind) {
    case OP_NOT: case OP_AND: case OP_OR: case OP_XOR: case OP_CAT: case OP_SLICE: case OP_ZEXT: case OP_SEXT: return under_all(k, r);
    case OP_MUX: {
        Ref cond = under(k, arg_at(c, r, 0)), x = under(k, arg_at(c, r, 1)), y = under(k, arg_at(c, r, 2));
        return ir_mux(c, cond, x, y);
    }
    case OP_PMUX: return under_pmux(k, r);
    default: return r;
    }
}

static Ref simplify(Circuit *c, Ref en, Ref value)
{
    if (!value) return 0;
    Care k = {.c = c, .budget = 4000};
    known_lits(&k, en);
    return under(&k, value);
}

void care_simplify(Circuit *c)
{
    for (uint32_t i = 0; i < c->writes.n; i++) {
        Write w = c->writes.data[i];
        w.data = simplify(c, w.en, w.data);
        w.index = simplify(c, w.en, w.index);
        w.lanes = simplify(c, w.en, w.lanes);
        c->writes.data[i] = w;
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        Emit e = c->emits.data[i];
        e.payload = simplify(c, e.en, e.payload);
        c->emits.data[i] = e;
    }
}
