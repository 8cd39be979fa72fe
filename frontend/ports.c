/* ports.c: two READs of one large memory that never matter in the same step become one READ, because in a model
 * every read port of a memory is a copy of the memory.
 *
 * READ m[i] and READ m[j] become READ m[MUX(p, i, j)] where p is true whenever the first matters and false whenever
 * the second does. Why the rest of the circuit does not notice: take the literals (observe.c) of both reads that
 * depend on neither of them. Where those of the first are all true the merged read gives m[i]; where one is false,
 * the user that contributed it ignores the value, before and after. The same holds for the second.
 * Needs: neither index depends on the other read, also not through a forward memory. Keeps: PMUX conditions
 * exclusive, as functions of any value that a read may give. */
#include "passes.h"

enum { MANY_ROWS = 64 }; /* fewer rows are cheaper to copy than a multiplexer of the index is */

typedef struct {
    Ref a, b;     /* the two reads; a's index is taken when select is 1 */
    Ref select;
    int late;     /* of select */
} Merge;

static bool is_wiring(OpKind k) { return k == OP_CAT || k == OP_SLICE || k == OP_ZEXT || k == OP_SEXT || k == OP_NOT; }

/* How late a value is known: levels of logic, and a memory on top of its index. */
static int *find_levels(const Circuit *c)
{
    enum { READ_LEVELS = 8 };
    int *level = xalloc(c->ops.n * sizeof *level);
    for (Ref r = 1; r < c->ops.n; r++) {
        const Op *op = op_at(c, r);
        for (uint32_t i = 0; i < op->nargs; i++)
            if (level[arg_at(c, r, i)] > level[r]) level[r] = level[arg_at(c, r, i)];
        if (op->nargs && !is_wiring((OpKind)op->kind)) level[r] += op->kind == OP_READ ? READ_LEVELS : 1;
    }
    return level;
}

/* Marks all READs of forward states whose write depends on a marked value. True when that marks one. */
static bool mark_forward(const Circuit *c, bool *mark)
{
    bool any = false;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        bool marked = mark[w->en] || mark[w->index] || mark[w->data] || mark[w->lanes];
        if (!marked || !c->states.data[w->state].forward) continue;
        for (Ref r = 1; r < c->ops.n; r++)
            if (op_at(c, r)->kind == OP_READ && op_at(c, r)->imm == w->state && !mark[r]) any = mark[r] = true;
    }
    return any;
}

/* The values that depend on a or b, those included. */
static bool *find_dependent(const Circuit *c, Ref a, Ref b)
{
    bool *mark = xalloc(c->ops.n * sizeof *mark);
    mark[a] = mark[b] = true;
    do {
        for (Ref r = 1; r < c->ops.n; r++)
            for (uint32_t i = 0; i < op_at(c, r)->nargs && !mark[r]; i++) mark[r] = mark[arg_at(c, r, i)];
    } while (mark_forward(c, mark));
    return mark;
}

static bool lits_exclusive(const Circuit *c, Lit p, Lit q)
{
    Ref x = lit_ref(p), y = lit_ref(q);
    if (x == y) return p != q;
    if (lit_neg(p) && lit_neg(q)) return false;
    if (lit_neg(q)) return ir_implies(c, x, y);
    return lit_neg(p) ? ir_implies(c, y, x) : ir_exclusive(c, x, y);
}

/* p is true when `a` matters and then q, which is true when `b` does, is false: takes the earlier of the two as the
 * select. */
static void consider(Merge *m, const int *level, Ref a, Ref b, Lit p, Lit q)
{
    if (!m->select || level[lit_ref(p)] < m->late)
        *m = (Merge){lit_neg(p) ? b : a, lit_neg(p) ? a : b, lit_ref(p), level[lit_ref(p)]};
    if (level[lit_ref(q)] < m->late)
        *m = (Merge){lit_neg(q) ? a : b, lit_neg(q) ? b : a, lit_ref(q), level[lit_ref(q)]};
}

static Merge find_select(const Circuit *c, const LitSet *at, const int *level, Ref a, Ref b)
{
    Merge m = {0};
    Ref i = arg_at(c, a, 0), j = arg_at(c, b, 0);
    int limit = level[i] > level[j] ? level[i] : level[j];
    if (at[a].all || at[b].all) return m;
    const bool *dependent = find_dependent(c, a, b);
    if (dependent[i] || dependent[j]) return m;
    for (uint32_t x = 0; x < at[a].n; x++) {
        Lit p = at[a].lit[x];
        for (uint32_t y = 0; y < at[b].n && !dependent[lit_ref(p)]; y++) {
            Lit q = at[b].lit[y];
            if (!dependent[lit_ref(q)] && lits_exclusive(c, p, q)) consider(&m, level, a, b, p, q);
        }
    }
    return m.late <= limit ? m : (Merge){0}; /* a late select would hold up every read */
}

static bool is_large(const Circuit *c, Ref r)
{
    const Op *op = op_at(c, r);
    return op->kind == OP_READ && op->nargs && c->states.data[op->imm].rows > MANY_ROWS;
}

static Merge find_merge(const Circuit *c)
{
    Merge m = {0};
    const int *level = NULL;
    const LitSet *at = NULL;
    for (Ref b = 1; b < c->ops.n; b++) {
        for (Ref a = 1; a < b && is_large(c, b); a++) {
            if (!is_large(c, a) || op_at(c, a)->imm != op_at(c, b)->imm) continue;
            if (!at) at = observe_values(c, OBSERVE_KEEP), level = find_levels(c);
            m = find_select(c, at, level, a, b);
            if (m.select) return m;
        }
    }
    return m;
}

static Ref make(Rebuild *b, Ref r, const Ref *args)
{
    const Merge *m = b->ctx;
    if (r != m->a && r != m->b) return rebuild_op(b, r, args);
    Ref i = rebuild_value(b, arg_at(b->from, m->a, 0)), j = rebuild_value(b, arg_at(b->from, m->b, 0));
    const Op *op = op_at(b->from, m->a);
    return ir_read(b->to, (uint32_t)op->imm, ir_mux(b->to, rebuild_value(b, m->select), i, j), op->span);
}

Circuit *pass_ports(Circuit *c)
{
    for (Merge m = find_merge(c); m.select; m = find_merge(c)) {
        Rebuild b = {.from = c, .make = make, .ctx = &m};
        c = rebuild(&b);
    }
    return c;
}
