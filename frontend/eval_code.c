/* eval_code.c: the live ops of a netlist as code for eval.c.
 *
 * Ops come in an order where a READ of a `forward` state follows the operands of its write. Registers, constants and
 * extensions with zeros are slots without code. A value that only one arm of a selection (or one write's data, one
 * emit's payload) needs is computed under that condition: such values form a REGION, regions form a tree, and a region
 * too small to pay for its jump dissolves into its parent. Trees of ANDs or ORs are one instruction. */
#include "eval.h"
#include <stdlib.h>
#include <string.h>

enum {
    ROOT = 1, /* region 0 is "not live" */
    DEEP = 100, /* regions do not nest deeper: code generation recurses */
    SMALL = 6 /* ops that are cheaper to compute than to jump over (measured) */
};

typedef struct {
    uint32_t parent, depth, cost;
    bool kept;
    VEC(Ref) ops;
} Region;

/* child[r] + i is the region of data argument i of the selection r, in argument order; 0 where r has none. */
typedef struct {
    Sim *s;
    VEC(Region) regions;
    VEC(Ref) order;                /* the live ops, users last */
    uint32_t *region, *child, *uses; /* per op */
    bool *inner;                   /* per op: it is part of its user's list */
    uint32_t *of_write, *of_emit;  /* per write, per emit */
} Compiler;

/* ---- order ---- */

const Write *sim_seen_write(const Sim *s, Ref r)
{
    const Op *op = op_at(s->c, r);
    bool forward = op->kind == OP_READ && s->c->states.data[op->imm].forward;
    return forward ? s->write[op->imm] : NULL;
}

Ref sim_dependency(const Sim *s, Ref r, uint32_t i)
{
    const Op *op = op_at(s->c, r);
    if (i < op->nargs) return arg_at(s->c, r, i);
    const Write *w = sim_seen_write(s, r);
    Ref needs[4] = {0};
    uint32_t n = 0;
    for (unsigned j = 0; w && j < 4; j++) {
        Ref x = (Ref[]){w->en, w->data, w->index, w->lanes}[j];
        if (x) needs[n++] = x;
    }
    return i - op->nargs < n ? needs[i - op->nargs] : 0;
}

/* Appends what r needs and r itself, depth first with a stack of our own: a netlist may be deeper than the C stack.
 * mark: 1 open, 2 done. */
static void put_in_order(Compiler *k, Ref root, uint8_t *mark)
{
    VEC(Ref) todo = {0};
    vec_push(&todo, root);
    while (todo.n) {
        Ref r = todo.data[todo.n - 1], d;
        if (!r || mark[r]) {
            todo.n--;
            if (!r || mark[r] == 2) continue;
            mark[r] = 2;
            vec_push(&k->order, r);
            continue;
        }
        mark[r] = 1;
        for (uint32_t i = 0; (d = sim_dependency(k->s, r, i)); i++) {
            if (mark[d] == 1) die("a forward read depends on itself (value %u)", d);
            if (!mark[d]) vec_push(&todo, d);
        }
    }
    free(todo.data);
}

static void find_order(Compiler *k)
{
    const Circuit *c = k->s->c;
    uint8_t *mark = sim_zeroed(c->ops.n, 1);
    put_in_order(k, c->retire, mark);
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        put_in_order(k, w->en, mark), put_in_order(k, w->index, mark);
        put_in_order(k, w->data, mark), put_in_order(k, w->lanes, mark);
    }
    for (uint32_t i = 0; i < c->emits.n; i++)
        put_in_order(k, c->emits.data[i].en, mark), put_in_order(k, c->emits.data[i].payload, mark);
    for (Ref r = 1; r < c->ops.n; r++)
        if (k->s->watched[r]) put_in_order(k, r, mark);
    free(mark);
}

/* ---- regions ---- */

static uint32_t new_region(Compiler *k, uint32_t parent)
{
    Region r = {.parent = parent, .depth = k->regions.n > ROOT ? k->regions.data[parent].depth + 1 : 0};
    return vec_push(&k->regions, r);
}

static uint32_t common(const Compiler *k, uint32_t a, uint32_t b)
{
    const Region *r = k->regions.data;
    if (!a || !b) return a | b;
    while (a != b) {
        if (r[a].depth >= r[b].depth) a = r[a].parent;
        else b = r[b].parent;
    }
    return a;
}

static void use(Compiler *k, Ref r, uint32_t region)
{
    if (!r) return;
    k->region[r] = common(k, k->region[r], region);
    k->uses[r]++;
}

/* The uses that op r makes of what it needs. All uses of r itself are known: they come later in the order. */
static void use_args(Compiler *k, Ref r)
{
    const Circuit *c = k->s->c;
    const Op *op = op_at(c, r);
    uint32_t at = k->region[r];
    bool select = (op->kind == OP_MUX || op->kind == OP_PMUX) && k->regions.data[at].depth < DEEP;
    if (select) k->child[r] = k->regions.n;
    for (uint32_t i = 0; i < op->nargs; i++) {
        bool data = op->kind == OP_MUX ? i > 0 : i % 2;
        use(k, arg_at(c, r, i), select && data ? new_region(k, at) : at);
    }
    for (uint32_t i = op->nargs; sim_dependency(k->s, r, i); i++) use(k, sim_dependency(k->s, r, i), at);
}

/* Constants, extensions with zeros and plain registers are slots without code. */
static bool is_code(const Sim *s, Ref r)
{
    const Op *op = op_at(s->c, r);
    if (op->kind == OP_READ) return op->nargs || sim_seen_write(s, r);
    return op->kind != OP_CONST && op->kind != OP_ZEXT && op->kind != OP_TOKEN;
}

static void find_regions(Compiler *k)
{
    const Circuit *c = k->s->c;
    new_region(k, 0);
    new_region(k, 0);
    use(k, c->retire, ROOT);
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        use(k, w->en, ROOT);
        k->of_write[i] = new_region(k, ROOT);
        use(k, w->data, k->of_write[i]);
        use(k, w->index, k->of_write[i]);
        use(k, w->lanes, k->of_write[i]);
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        use(k, e->en, ROOT);
        k->of_emit[i] = new_region(k, ROOT);
        use(k, e->payload, k->of_emit[i]);
    }
    for (Ref r = 1; r < c->ops.n; r++)
        if (k->s->watched[r]) use(k, r, ROOT);
    for (uint32_t i = k->order.n; i-- > 0;) use_args(k, k->order.data[i]);
}

/* An AND within an AND, an OR within an OR, that nothing else needs: its operands are listed by its user. */
static bool is_inner(const Compiler *k, Ref user, Ref r)
{
    const Circuit *c = k->s->c;
    OpKind kind = op_at(c, user)->kind;
    if ((kind != OP_AND && kind != OP_OR) || op_at(c, r)->kind != kind) return false;
    return k->uses[r] == 1 && k->region[r] == k->region[user];
}

/* Dissolves small regions and sorts the ops into the others. A parent has a smaller index than its children. */
static void settle_regions(Compiler *k)
{
    Region *reg = k->regions.data;
    for (uint32_t i = 0; i < k->order.n; i++) reg[k->region[k->order.data[i]]].cost += is_code(k->s, k->order.data[i]);
    for (uint32_t i = k->regions.n; i-- > ROOT;) {
        reg[i].kept = i == ROOT || reg[i].cost >= SMALL;
        reg[reg[i].parent].cost += reg[i].cost;
    }
    for (uint32_t i = 0; i < k->order.n; i++) {
        Ref r = k->order.data[i];
        while (!reg[k->region[r]].kept) k->region[r] = reg[k->region[r]].parent;
        if (is_code(k->s, r)) vec_push(&reg[k->region[r]].ops, r);
    }
}

/* ---- code ---- */

static uint32_t put_ins(Compiler *k, Code code, uint32_t dst, uint32_t a, uint32_t b, uint32_t c, uint64_t imm)
{
    return vec_push(&k->s->code, ((Ins){code, dst, a, b, c, imm}));
}

static uint32_t here(const Compiler *k) { return k->s->code.n; }
static void land(Compiler *k, uint32_t jump) { k->s->code.data[jump].k = here(k); }

static void gen_region(Compiler *k, uint32_t region);

static void gen_move(Compiler *k, uint32_t region, uint32_t dst, uint32_t src)
{
    gen_region(k, region);
    put_ins(k, I_MOVE, dst, src, 0, 0, 0);
}

static void gen_mux(Compiler *k, Ref r)
{
    const Circuit *c = k->s->c;
    const uint32_t *loc = k->s->loc;
    uint32_t s = loc[arg_at(c, r, 0)], a = loc[arg_at(c, r, 1)], b = loc[arg_at(c, r, 2)], child = k->child[r];
    const Region *reg = k->regions.data;
    if (!child || (!reg[child].kept && !reg[child + 1].kept)) {
        put_ins(k, I_MUX, r, a, b, s, 0);
        return;
    }
    uint32_t no = put_ins(k, I_JZERO, 0, s, 0, 0, 0);
    gen_move(k, child, r, a);
    uint32_t end = put_ins(k, I_JUMP, 0, 0, 0, 0, 0);
    land(k, no);
    gen_move(k, child + 1, r, b);
    land(k, end);
}

/* Plain: the list holds conditions and values. With regions: conditions and targets, and I_SWITCH goes to the arm whose
 * condition is set, or sets 0 and goes on to the jump that follows it. */
static void gen_pmux(Compiler *k, Ref r)
{
    const Circuit *c = k->s->c;
    uint32_t n = op_at(c, r)->nargs / 2, child = k->child[r], at = k->s->list.n;
    bool jumps = false;
    for (uint32_t i = 0; i < n && child; i++) jumps |= k->regions.data[child + i].kept;
    for (uint32_t i = 0; i < 2 * n; i++) vec_push(&k->s->list, k->s->loc[arg_at(c, r, i)]);
    put_ins(k, jumps ? I_SWITCH : I_PMUX, r, at, n, 0, 0);
    if (!jumps) return;
    uint32_t *end = xrealloc(NULL, (n + 1) * sizeof *end);
    end[n] = put_ins(k, I_JUMP, 0, 0, 0, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        k->s->list.data[at + 2 * i + 1] = here(k);
        gen_move(k, child + i, r, k->s->loc[arg_at(c, r, 2 * i + 1)]);
        end[i] = put_ins(k, I_JUMP, 0, 0, 0, 0, 0);
    }
    for (uint32_t i = 0; i <= n; i++) land(k, end[i]);
    free(end);
}

static void gen_cat(Compiler *k, Ref r)
{
    const Circuit *c = k->s->c;
    uint32_t high = k->s->loc[arg_at(c, r, 0)];
    uint32_t n = op_at(c, r)->nargs;
    if (n == 1) put_ins(k, I_MOVE, r, high, 0, 0, 0);
    for (uint32_t i = 1; i < n; i++) {
        Ref low = arg_at(c, r, i);
        put_ins(k, I_CAT, r, high, k->s->loc[low], op_at(c, low)->width, 0);
        high = r;
    }
}

static void list_operands(Compiler *k, Ref root)
{
    VEC(Ref) todo = {0};
    vec_push(&todo, root);
    while (todo.n) {
        Ref r = todo.data[--todo.n];
        for (uint32_t i = 0; i < 2; i++) {
            Ref a = arg_at(k->s->c, r, i);
            if (is_inner(k, r, a)) vec_push(&todo, a);
            else vec_push(&k->s->list, k->s->loc[a]);
        }
    }
    free(todo.data);
}

/* One instruction for a tree of ANDs or ORs. False where r is no such tree. */
static bool gen_list(Compiler *k, Ref r)
{
    const Circuit *c = k->s->c;
    uint32_t at = k->s->list.n;
    if (op_at(c, r)->nargs != 2 || !(is_inner(k, r, arg_at(c, r, 0)) || is_inner(k, r, arg_at(c, r, 1)))) return false;
    list_operands(k, r);
    put_ins(k, op_at(c, r)->kind == OP_AND ? I_AND_LIST : I_OR_LIST, r, at, k->s->list.n - at, 0, 0);
    return true;
}

static const Code simple_code[OP_COUNT] = {
    [OP_ADD] = I_ADD, [OP_SUB] = I_SUB, [OP_MUL] = I_MUL, [OP_AND] = I_AND, [OP_OR] = I_OR, [OP_XOR] = I_XOR,
    [OP_NOT] = I_NOT, [OP_SHL] = I_SHL, [OP_LSHR] = I_LSHR, [OP_ASHR] = I_ASHR, [OP_EQ] = I_EQ, [OP_ULT] = I_ULT,
    [OP_SLT] = I_SLT, [OP_SLICE] = I_SLICE, [OP_SEXT] = I_SEXT,
};

static void gen_read(Compiler *k, Ref r)
{
    const Op *op = op_at(k->s->c, r);
    uint32_t index = op->nargs ? k->s->loc[arg_at(k->s->c, r, 0)] : 0;
    put_ins(k, sim_seen_write(k->s, r) ? I_FORWARD : I_ROW, r, index, op->nargs, (uint32_t)op->imm, 0);
}

static void gen_op(Compiler *k, Ref r)
{
    const Circuit *c = k->s->c;
    const Op *op = op_at(c, r);
    const uint32_t *loc = k->s->loc;
    uint32_t a = op->nargs > 0 ? loc[arg_at(c, r, 0)] : 0, b = op->nargs > 1 ? loc[arg_at(c, r, 1)] : 0, x = 0;
    unsigned w0 = op->nargs ? op_at(c, arg_at(c, r, 0))->width : 0;
    if (k->inner[r] || gen_list(k, r)) return;
    switch (op->kind) {
    case OP_MUX: gen_mux(k, r); return;
    case OP_PMUX: gen_pmux(k, r); return;
    case OP_CAT: gen_cat(k, r); return;
    case OP_READ: gen_read(k, r); return;
    case OP_SHL: case OP_LSHR: x = op->width; break;
    case OP_ASHR: case OP_SLT: case OP_SEXT: x = 64 - w0; break;
    case OP_SLICE: x = (uint32_t)op->imm; break;
    default: break;
    }
    put_ins(k, simple_code[op->kind], r, a, b, x, mask64(op->width));
}

static void gen_region(Compiler *k, uint32_t region)
{
    if (!k->regions.data[region].kept) return;
    for (uint32_t i = 0; i < k->regions.data[region].ops.n; i++) gen_op(k, k->regions.data[region].ops.data[i]);
}

/* A region under an enable: the data of a write, the payload of an emit. */
static void gen_guarded(Compiler *k, Ref en, uint32_t region)
{
    if (!k->regions.data[region].kept) return;
    uint32_t no = put_ins(k, I_JZERO, 0, k->s->loc[en], 0, 0, 0);
    gen_region(k, region);
    land(k, no);
}

static void place_slots(Sim *s)
{
    const Circuit *c = s->c;
    for (Ref r = 1; r < c->ops.n; r++) {
        const Op *op = op_at(c, r);
        s->loc[r] = r;
        if (op->kind == OP_CONST) s->slot[r] = op->imm;
        if (op->kind == OP_ZEXT) s->loc[r] = s->loc[arg_at(c, r, 0)];
        if (op->kind == OP_READ && !is_code(s, r)) s->loc[r] = c->ops.n + (uint32_t)op->imm;
    }
}

void sim_compile(Sim *s)
{
    const Circuit *c = s->c;
    Compiler k = {.s = s};
    k.region = sim_zeroed(c->ops.n, sizeof *k.region);
    k.child = sim_zeroed(c->ops.n, sizeof *k.child);
    k.uses = sim_zeroed(c->ops.n, sizeof *k.uses);
    k.inner = sim_zeroed(c->ops.n, sizeof *k.inner);
    k.of_write = sim_zeroed(c->writes.n, sizeof *k.of_write);
    k.of_emit = sim_zeroed(c->emits.n, sizeof *k.of_emit);
    s->code.n = s->list.n = 0;
    place_slots(s);
    find_order(&k);
    find_regions(&k);
    settle_regions(&k);
    for (uint32_t i = 0; i < k.order.n; i++) {
        Ref r = k.order.data[i];
        for (uint32_t j = 0; j < op_at(c, r)->nargs; j++) k.inner[arg_at(c, r, j)] |= is_inner(&k, r, arg_at(c, r, j));
    }
    gen_region(&k, ROOT);
    for (uint32_t i = 0; i < c->writes.n; i++) gen_guarded(&k, c->writes.data[i].en, k.of_write[i]);
    for (uint32_t i = 0; i < c->emits.n; i++) gen_guarded(&k, c->emits.data[i].en, k.of_emit[i]);
    put_ins(&k, I_END, 0, 0, 0, 0, 0);
    for (uint32_t i = 0; i < k.regions.n; i++) free(k.regions.data[i].ops.data);
    free(k.regions.data);
    free(k.order.data);
    free(k.region);
    free(k.child);
    free(k.uses);
    free(k.inner);
    free(k.of_write);
    free(k.of_emit);
    s->ready = true;
}

