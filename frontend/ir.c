/* ir.c: the builder: structural hashing, canonical argument order, and the call into the folding rules.
 * Every op passes through ir_op once, so an equal op exists once and nothing needs a sweep afterwards. */
#include "ir.h"
#include <stdlib.h>
#include <string.h>

const char *const op_name[OP_COUNT] = {
#define OP(e, name, arity, comm) name,
#include "ops.def"
#undef OP
};

static const bool op_commutes[OP_COUNT] = {
#define OP(e, name, arity, comm) comm,
#include "ops.def"
#undef OP
};

/* Open addressing over refs; 0 is an empty slot. Doubles at half load. */
typedef struct {
    Ref *slot;
    uint32_t n, cap;
} Table;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static uint64_t op_hash(const Op *op, const Ref *args)
{
    uint64_t h = mix(mix(op->kind * 64u + op->width, op->imm), op->nargs);
    for (uint32_t i = 0; i < op->nargs; i++) h = mix(h, args[i]);
    return h;
}

static bool op_same(const Circuit *c, const Op *a, const Op *op, const Ref *args)
{
    return a->kind == op->kind && a->width == op->width && a->imm == op->imm && a->nargs == op->nargs &&
           (!op->nargs || !memcmp(c->args.data + a->arg0, args, op->nargs * sizeof *args));
}

/* The slot that holds an equal op, or the empty slot where it belongs. */
static Ref *table_find(const Circuit *c, Table *t, const Op *op, const Ref *args)
{
    uint32_t i = (uint32_t)op_hash(op, args) & (t->cap - 1);
    while (t->slot[i] && !op_same(c, op_at(c, t->slot[i]), op, args)) i = (i + 1) & (t->cap - 1);
    return &t->slot[i];
}

static void table_grow(Circuit *c, Table *t)
{
    Ref *old = t->slot;
    uint32_t cap = t->cap;
    t->cap = cap ? cap * 2 : 256;
    t->slot = xrealloc(NULL, t->cap * sizeof *t->slot);
    memset(t->slot, 0, t->cap * sizeof *t->slot);
    for (uint32_t i = 0; i < cap; i++) {
        if (!old[i]) continue;
        const Op *op = op_at(c, old[i]);
        *table_find(c, t, op, op->nargs ? c->args.data + op->arg0 : NULL) = old[i];
    }
    free(old);
}

Circuit *circuit_new(const char *name)
{
    Circuit *c = xalloc(sizeof *c);
    c->name = intern(name, strlen(name));
    c->hash = xalloc(sizeof(Table));
    vec_push(&c->ops, (Op){0});
    table_grow(c, c->hash);
    return c;
}

Circuit *circuit_like(const Circuit *c)
{
    Circuit *d = circuit_new(c->name);
    for (uint32_t i = 0; i < c->states.n; i++) vec_push(&d->states, c->states.data[i]);
    return d;
}

Ref ir_raw(Circuit *c, const Op *op, const Ref *args, bool unique)
{
    Table *t = c->hash;
    if (t->n * 2 >= t->cap) table_grow(c, t);
    Ref *slot = table_find(c, t, op, args);
    if (*slot && unique) return *slot;
    Op made = *op;
    made.arg0 = c->args.n;
    for (uint32_t i = 0; i < op->nargs; i++) vec_push(&c->args, args[i]);
    Ref r = vec_push(&c->ops, made);
    if (!*slot) {
        *slot = r;
        t->n++;
    }
    return r;
}

bool ir_is_const(const Circuit *c, Ref r, uint64_t *value)
{
    const Op *op = op_at(c, r);
    if (!r || op->kind != OP_CONST) return false;
    if (value) *value = op->imm;
    return true;
}

Ref ir_const(Circuit *c, unsigned width, uint64_t value)
{
    if (width < 1 || width > 64) die("constant of width %u", width);
    Op op = {.kind = OP_CONST, .width = (uint8_t)width, .imm = value & mask64(width)};
    return ir_raw(c, &op, NULL, true);
}

/* A constant goes last, else the older value first. */
static void order_args(const Circuit *c, Ref *a)
{
    bool k0 = op_at(c, a[0])->kind == OP_CONST, k1 = op_at(c, a[1])->kind == OP_CONST;
    if (k0 != k1 ? k1 : a[0] <= a[1]) return;
    Ref t = a[0];
    a[0] = a[1];
    a[1] = t;
}

static int arm_order(const void *x, const void *y)
{
    const Ref *a = x, *b = y;
    unsigned i = a[0] == b[0];
    return a[i] < b[i] ? -1 : a[i] > b[i];
}

Ref ir_op(Circuit *c, OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const Ref *args, Span span)
{
    if (kind == OP_CONST) return ir_const(c, width, imm);
    const char *bad = op_check(c, kind, width, imm, nargs, args);
    if (bad) die("%s of width %u at line %u: %s", kind < OP_COUNT ? op_name[kind] : "?", width, span.line, bad);
    Ref small[8], *copy = nargs <= 8 ? small : xalloc(nargs * sizeof *copy);
    if (nargs) memcpy(copy, args, nargs * sizeof *copy);
    if (op_commutes[kind]) order_args(c, copy);
    if (kind == OP_PMUX) qsort(copy, nargs / 2, 2 * sizeof *copy, arm_order);
    Op op = {.kind = (uint8_t)kind, .width = (uint8_t)width, .nargs = nargs, .imm = imm, .span = span};
    Ref r = *table_find(c, c->hash, &op, copy); /* what did not fold once does not fold now */
    if (r) return r;
    Request q = {kind, width, imm, nargs, copy, span};
    r = ir_fold(c, &q);
    if (r && op_at(c, r)->width != width) die("folding %s gave width %u", op_name[kind], op_at(c, r)->width);
    return r ? r : ir_raw(c, &op, copy, true);
}

Ref ir_read(Circuit *c, uint32_t state, Ref index, Span span)
{
    if (state >= c->states.n) die("read of state %u of %u", state, c->states.n);
    return ir_op(c, OP_READ, c->states.data[state].width, state, index ? 1 : 0, &index, span);
}

/* The conveniences carry the place of their first argument that has one. */
static Ref build(Circuit *c, OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const Ref *args)
{
    Span span = {0};
    for (unsigned i = 0; i < nargs && !span.file; i++) span = op_at(c, args[i])->span;
    return ir_op(c, kind, width, imm, nargs, args, span);
}

static Ref build2(Circuit *c, OpKind kind, unsigned width, Ref a, Ref b)
{
    return build(c, kind, width, 0, 2, (Ref[]){a, b});
}

Ref ir_not(Circuit *c, Ref a) { return build(c, OP_NOT, op_at(c, a)->width, 0, 1, &a); }
Ref ir_and(Circuit *c, Ref a, Ref b) { return build2(c, OP_AND, op_at(c, a)->width, a, b); }
Ref ir_or(Circuit *c, Ref a, Ref b) { return build2(c, OP_OR, op_at(c, a)->width, a, b); }
Ref ir_xor(Circuit *c, Ref a, Ref b) { return build2(c, OP_XOR, op_at(c, a)->width, a, b); }
Ref ir_add(Circuit *c, Ref a, Ref b) { return build2(c, OP_ADD, op_at(c, a)->width, a, b); }
Ref ir_eq(Circuit *c, Ref a, Ref b) { return build2(c, OP_EQ, 1, a, b); }

Ref ir_mux(Circuit *c, Ref cond, Ref a, Ref b)
{
    return build(c, OP_MUX, op_at(c, a)->width, 0, 3, (Ref[]){cond, a, b});
}

Ref ir_slice(Circuit *c, Ref a, unsigned lo, unsigned width) { return build(c, OP_SLICE, width, lo, 1, &a); }

Ref ir_cat2(Circuit *c, Ref hi, Ref lo)
{
    return build2(c, OP_CAT, op_at(c, hi)->width + op_at(c, lo)->width, hi, lo);
}

Ref ir_lanes(Circuit *c, Ref lanes, unsigned lane, Ref data, Ref old)
{
    Ref all = 0;
    if (!lanes) return data;
    for (unsigned lo = 0, width = op_at(c, data)->width; lo < width; lo += lane) {
        Ref l = ir_mux(c, ir_slice(c, lanes, lo / lane, 1), ir_slice(c, data, lo, lane), ir_slice(c, old, lo, lane));
        all = all ? ir_cat2(c, l, all) : l;
    }
    return all;
}

Ref ir_zext(Circuit *c, Ref a, unsigned width) { return build(c, OP_ZEXT, width, 0, 1, &a); }
Ref ir_sext(Circuit *c, Ref a, unsigned width) { return build(c, OP_SEXT, width, 0, 1, &a); }
