/* verify.c: the invariants of ir.h and ops.def in one place. circuit_check runs on circuits from text and, in debug
 * builds, after every pass; op_check on every op that is built. A circuit that passes never makes a later stage die
 * for its shape. The one invariant that cannot be seen here (a PMUX with two conditions set) is eval.c's. */
#include "ir.h"
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 1 << 28 /* the interpreter holds every row in host memory */
};

static const int op_arity[OP_COUNT] = {
#define OP(e, name, arity, comm) arity,
#include "ops.def"
#undef OP
};

static const char *check_same(const Circuit *c, unsigned width, const Ref *args, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (op_at(c, args[i])->width != width) return xfmt("argument %u has width %u", i + 1, op_at(c, args[i])->width);
    return NULL;
}

static const char *check_compare(const Circuit *c, unsigned width, const Ref *args)
{
    if (width != 1) return "a comparison has width 1";
    return check_same(c, op_at(c, args[0])->width, args, 2);
}

static const char *check_pmux(const Circuit *c, unsigned width, unsigned nargs, const Ref *args)
{
    if (nargs % 2) return "conditions and values must alternate";
    for (unsigned i = 0; i < nargs; i += 2) {
        if (op_at(c, args[i])->width != 1) return "a condition must have width 1";
        if (op_at(c, args[i + 1])->width != width) return xfmt("value %u has another width", i / 2 + 1);
    }
    return NULL;
}

static const char *check_cat(const Circuit *c, unsigned width, unsigned nargs, const Ref *args)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < nargs && sum <= 64; i++) sum += op_at(c, args[i])->width;
    return sum == width && nargs ? NULL : "the width is not the sum of its parts";
}

static const char *check_read(const Circuit *c, unsigned width, uint64_t imm, unsigned nargs, const Ref *args)
{
    if (imm >= c->states.n) return "no such state";
    const State *s = &c->states.data[imm];
    if (width != s->width) return xfmt("state %s has width %u", s->name, s->width);
    bool scalar = s->kind == ST_REG || s->kind == ST_HOST;
    if (nargs != (scalar ? 0u : 1u)) return scalar ? "a register has no index" : "an index is missing";
    if (scalar) return NULL;
    unsigned w = clog2(s->rows) ? clog2(s->rows) : 1;
    return op_at(c, args[0])->width == w ? NULL : xfmt("the index of state %s has width %u", s->name, w);
}

const char *op_check(const Circuit *c, OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const Ref *args)
{
    if ((unsigned)kind >= OP_COUNT) return "unknown kind";
    if (width < 1 || width > 64) return "widths are 1..64";
    if (op_arity[kind] >= 0 && nargs != (unsigned)op_arity[kind]) return "wrong number of arguments";
    for (unsigned i = 0; i < nargs; i++)
        if (!args[i] || args[i] >= c->ops.n) return xfmt("argument %u does not exist", i + 1);
    unsigned w0 = nargs ? op_at(c, args[0])->width : 0;
    switch (kind) {
    case OP_CONST: return imm & ~mask64(width) ? "the constant does not fit its width" : NULL;
    case OP_READ: return check_read(c, width, imm, nargs, args);
    case OP_SHL: case OP_LSHR: case OP_ASHR: return check_same(c, width, args, 1);
    case OP_EQ: case OP_ULT: case OP_SLT: return check_compare(c, width, args);
    case OP_MUX: return w0 == 1 ? check_same(c, width, args + 1, 2) : "the condition must have width 1";
    case OP_PMUX: return check_pmux(c, width, nargs, args);
    case OP_CAT: return check_cat(c, width, nargs, args);
    case OP_SLICE: return imm < 64 && imm + width <= w0 ? NULL : xfmt("bits beyond width %u", w0);
    case OP_ZEXT: case OP_SEXT: return width >= w0 ? NULL : xfmt("argument is wider: %u", w0);
    case OP_TOKEN: return NULL;
    default: return check_same(c, width, args, nargs);
    }
}

static const char *check_state(const State *s)
{
    bool scalar = s->kind == ST_REG || s->kind == ST_HOST;
    if (!s->name || !*s->name) return "it has no name";
    if ((unsigned)s->kind > ST_HOST || (unsigned)s->init > INIT_SYMBOL || (unsigned)s->home > HOME_WEIGHTS) return "unknown kind";
    if (s->width < 1 || s->width > 64) return "widths are 1..64";
    if (s->rows < 1 || s->rows > ROWS_MAX) return xfmt("it has %u rows; 1..%d are possible", s->rows, ROWS_MAX);
    if (scalar && s->rows != 1) return "a register has one row";
    if (!s->lane || s->width % s->lane) return "the lane does not divide the width";
    if (s->nrow_init > s->rows) return "more initial rows than rows";
    if (s->nrow_init && s->init != INIT_ROWS && s->init != INIT_SYMBOL) return "initial rows without `rows`";
    for (uint32_t i = 0; i < s->nrow_init; i++)
        if (s->init == INIT_ROWS && s->row_init[i] & ~mask64(s->width)) return "an initial value does not fit";
    if (s->init == INIT_IMAGE && (s->kind != ST_MEM || s->width % 8)) return "only memories of whole bytes hold an image";
    if ((s->init == INIT_ENTRY || s->init == INIT_SYMBOL) && !scalar) return "only registers hold an address of the image";
    if (s->init == INIT_SYMBOL && (!s->symbol || !*s->symbol || s->nrow_init > 1)) return "which symbol?";
    if (s->init_shift > 63) return "init_shift is 0..63";
    if (s->init_shift && s->init != INIT_ENTRY && s->init != INIT_SYMBOL) return "init_shift without an address of the image";
    if (s->base && s->kind != ST_MEM) return "only memories have a base";
    if (s->has_hard && (s->hard_row >= s->rows || s->hard_value & ~mask64(s->width))) return "its hard row does not exist or fit";
    return NULL;
}

static const char *check_states(const Circuit *c)
{
    for (uint32_t i = 0; i < c->states.n; i++) {
        const State *s = &c->states.data[i];
        const char *bad = check_state(s);
        for (uint32_t j = 0; !bad && j < i; j++)
            if (!strcmp(s->name, c->states.data[j].name)) bad = "declared twice";
        if (bad) return xfmt("state %s: %s", s->name ? s->name : "?", bad);
    }
    return NULL;
}

static bool has_width(const Circuit *c, Ref r, unsigned width)
{
    return r && r < c->ops.n && op_at(c, r)->width == width;
}

static const char *check_write(const Circuit *c, const Write *w)
{
    const State *s = &c->states.data[w->state];
    if (s->kind == ST_HOST) return "only the host writes a host register";
    bool scalar = s->kind == ST_REG;
    unsigned iw = clog2(s->rows) ? clog2(s->rows) : 1;
    if (!has_width(c, w->en, 1)) return "the enable must have width 1";
    if (scalar ? w->index != 0 : !has_width(c, w->index, iw)) return scalar ? "a register has no index" : "bad index";
    if (!has_width(c, w->data, s->width)) return "the data do not have the state's width";
    if (w->lanes && (s->width / s->lane > 64 || !has_width(c, w->lanes, s->width / s->lane))) return "bad lanes";
    return NULL;
}

static const char *check_writes(const Circuit *c)
{
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        if (w->state >= c->states.n) return "a write to no state";
        const char *bad = check_write(c, w);
        for (uint32_t j = 0; !bad && j < i; j++)
            if (c->writes.data[j].state == w->state) bad = "a second write port";
        if (bad) return xfmt("write to %s: %s", c->states.data[w->state].name, bad);
    }
    return NULL;
}

static const char *check_emits(const Circuit *c)
{
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        const char *bad = NULL;
        if ((unsigned)e->role > EMIT_TAKE) bad = "unknown role";
        else if (!e->name) bad = "no name";
        else if (!has_width(c, e->en, 1)) bad = "the enable must have width 1";
        else if (e->payload && e->payload >= c->ops.n) bad = "the payload does not exist";
        else if (e->role == EMIT_FAULT && !e->message) bad = "a fault has a message";
        else if (e->role == EMIT_TAKE && (e->state >= c->states.n || c->states.data[e->state].kind != ST_HOST))
            bad = "take is of a host register";
        for (uint32_t j = 0; !bad && j < i; j++)
            if (c->emits.data[j].role == e->role && !strcmp(c->emits.data[j].name, e->name)) bad = "made twice";
        if (bad) return xfmt("emit %s: %s", e->name ? e->name : "?", bad);
    }
    return NULL;
}

/* ---- forward states: a READ needs the operands of the write that it sees, which must not need that READ ---- */

typedef struct {
    const Circuit *c;
    const Write **seen; /* per state: the write that a READ sees */
    uint8_t *mark;      /* per op: 1 open, 2 done */
    VEC(Ref) todo;
} Walk;

/* Opens r if it is new. True when r is open already, which closes a circle. */
static bool visit(Walk *w, Ref r)
{
    if (!r || w->mark[r] == 2) return false;
    if (w->mark[r] == 1) return true;
    vec_push(&w->todo, r);
    return false;
}

static bool visit_needs(Walk *w, Ref r)
{
    const Op *op = op_at(w->c, r);
    const Write *x = op->kind == OP_READ ? w->seen[op->imm] : NULL;
    bool circle = false;
    for (uint32_t i = 0; i < op->nargs; i++) circle |= visit(w, arg_at(w->c, r, i));
    if (x) circle = circle || visit(w, x->en) || visit(w, x->index) || visit(w, x->data) || visit(w, x->lanes);
    return circle;
}

static const char *walk_from(Walk *w, Ref root)
{
    visit(w, root);
    while (w->todo.n) {
        Ref r = w->todo.data[w->todo.n - 1];
        if (w->mark[r]) {
            w->mark[r] = 2;
            w->todo.n--;
            continue;
        }
        w->mark[r] = 1;
        if (visit_needs(w, r)) return "a forward read needs itself";
    }
    return NULL;
}

static const char *check_forward(const Circuit *c)
{
    bool any = false;
    Walk w = {.c = c, .seen = xalloc((c->states.n + 1) * sizeof *w.seen)};
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *x = &c->writes.data[i];
        if (c->states.data[x->state].forward) any = true, w.seen[x->state] = x;
    }
    if (!any) return NULL; /* arguments are older than their users */
    w.mark = xalloc(c->ops.n);
    const char *bad = NULL;
    for (Ref r = 1; !bad && r < c->ops.n; r++) bad = walk_from(&w, r);
    free(w.todo.data);
    return bad;
}

const char *circuit_check(const Circuit *c)
{
    if (!c->name) return "the circuit has no name";
    const char *bad = check_states(c);
    for (Ref r = 1; !bad && r < c->ops.n; r++) {
        const Op *op = op_at(c, r);
        if ((uint64_t)op->arg0 + op->nargs > c->args.n) return xfmt("%%%u: arguments out of range", r);
        const Ref *args = op->nargs ? c->args.data + op->arg0 : NULL;
        for (uint32_t i = 0; !bad && i < op->nargs; i++)
            if (args[i] >= r) bad = xfmt("argument %u is not an earlier value", i + 1);
        if (!bad) bad = op_check(c, op->kind, op->width, op->imm, op->nargs, args);
        if (bad) return xfmt("%%%u = %s: %s", r, op->kind < OP_COUNT ? op_name[op->kind] : "?", bad);
    }
    if (!bad) bad = check_writes(c);
    if (!bad) bad = check_emits(c);
    if (!bad) bad = check_forward(c);
    if (!bad && !has_width(c, c->retire, 1)) bad = "retire must be a value of width 1";
    return bad;
}
