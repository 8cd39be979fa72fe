/* eval.c: the interpreter of the netlist: the first oracle.
 *
 * At start the ops that writes, emits and watched values reach are put in order of their dependencies (a READ of a `forward` state
 * element comes after the operands of its write) and then run one after the other, each step, over a flat array of values. */
#include "ir.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    Op op;
    Ref dst, a, b, c; /* the first three arguments */
    unsigned width;   /* of argument a */
} Ins;

struct Sim {
    const Circuit *c;
    uint64_t **row;    /* per state */
    const Write **write; /* per state, NULL: none */
    uint64_t *value;   /* per op */
    bool *watched;
    VEC(Ins) code;
    bool ready;
    VEC(Event) events;
    uint64_t steps;
};

/* ---- order ---- */

static void order(Sim *s, Ref r, uint8_t *seen)
{
    if (!r || seen[r] == 2) return;
    if (seen[r] == 1) die("a forward read depends on itself (value %u)", r);
    seen[r] = 1;
    const Op *o = op_at(s->c, r);
    for (uint32_t i = 0; i < o->nargs; i++) order(s, arg_at(s->c, r, i), seen);
    if (o->kind == OP_READ && s->c->states.data[o->imm].forward && s->write[o->imm]) {
        const Write *w = s->write[o->imm];
        order(s, w->en, seen), order(s, w->index, seen), order(s, w->data, seen), order(s, w->lanes, seen);
    }
    seen[r] = 2;
    if (o->kind == OP_CONST || o->kind == OP_TOKEN) {
        s->value[r] = o->kind == OP_CONST ? o->imm : 0;
        return;
    }
    Ins in = {.op = *o, .dst = r};
    if (o->nargs > 0) in.a = arg_at(s->c, r, 0), in.width = op_at(s->c, in.a)->width;
    if (o->nargs > 1) in.b = arg_at(s->c, r, 1);
    if (o->nargs > 2) in.c = arg_at(s->c, r, 2);
    vec_push(&s->code, in);
}

static void compile(Sim *s)
{
    const Circuit *c = s->c;
    uint8_t *seen = calloc(c->ops.n + 1, 1);
    if (!seen) die("out of memory");
    s->code.n = 0;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        order(s, w->en, seen), order(s, w->index, seen), order(s, w->data, seen), order(s, w->lanes, seen);
    }
    for (uint32_t i = 0; i < c->emits.n; i++) order(s, c->emits.data[i].en, seen), order(s, c->emits.data[i].payload, seen);
    order(s, c->retire, seen);
    for (Ref r = 1; r < c->ops.n; r++)
        if (s->watched[r]) order(s, r, seen);
    free(seen);
    s->ready = true;
}

/* ---- state ---- */

static uint64_t from_bytes(const uint8_t *b, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v |= (uint64_t)b[i] << 8 * i;
    return v;
}

static void fill_image(uint64_t *row, const State *st, const Image *im)
{
    enum { BLOCK = 4096 };
    uint8_t buf[BLOCK * 8];
    unsigned n = st->width / 8;
    for (uint32_t r = 0; im && r < st->rows; r += BLOCK) {
        uint32_t k = st->rows - r < BLOCK ? st->rows - r : BLOCK;
        im->read(im, st->base + (uint64_t)r * n, buf, (size_t)k * n);
        for (uint32_t i = 0; i < k; i++) row[r + i] = from_bytes(buf + (size_t)i * n, n);
    }
}

static void fill(uint64_t *row, const State *st, const Image *im)
{
    uint64_t v = 0;
    switch (st->init) {
    case INIT_ZERO: break;
    case INIT_ROWS: memcpy(row, st->row_init, st->nrow_init * sizeof *row); break;
    case INIT_IMAGE: fill_image(row, st, im); break;
    case INIT_ENTRY: row[0] = (im ? im->entry : 0) >> st->init_shift & mask64(st->width); break;
    case INIT_SYMBOL:
        if (!im || !im->symbol || !im->symbol(im, st->symbol, &v)) v = st->nrow_init ? st->row_init[0] : 0;
        row[0] = v >> st->init_shift & mask64(st->width);
        break;
    }
    if (st->has_hard) row[st->hard_row] = st->hard_value;
}

Sim *sim_new(const Circuit *c, const Image *image)
{
    Sim *s = calloc(1, sizeof *s);
    if (!s) die("out of memory");
    s->c = c;
    s->row = calloc(c->states.n + 1, sizeof *s->row);
    s->write = calloc(c->states.n + 1, sizeof *s->write);
    s->value = calloc(c->ops.n + 1, sizeof *s->value);
    s->watched = calloc(c->ops.n + 1, 1);
    if (!s->row || !s->write || !s->value || !s->watched) die("out of memory");
    for (uint32_t i = 0; i < c->states.n; i++) {
        s->row[i] = calloc(c->states.data[i].rows, sizeof(uint64_t));
        if (!s->row[i]) die("out of memory for %s", c->states.data[i].name);
        fill(s->row[i], &c->states.data[i], image);
    }
    for (uint32_t i = 0; i < c->writes.n; i++) s->write[c->writes.data[i].state] = &c->writes.data[i];
    return s;
}

void sim_free(Sim *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->c->states.n; i++) free(s->row[i]);
    free(s->row);
    free(s->write);
    free(s->value);
    free(s->watched);
    free(s->code.data);
    free(s->events.data);
    free(s);
}

void sim_watch(Sim *s, Ref r)
{
    if (!r || s->watched[r]) return;
    s->watched[r] = true;
    s->ready = false;
}

/* ---- one step ---- */

static uint64_t lane_mask(const State *st, uint64_t lanes)
{
    uint64_t m = 0;
    for (unsigned k = 0; k * st->lane < st->width; k++)
        if (lanes >> k & 1) m |= mask64(st->lane) << k * st->lane;
    return m;
}

/* The row's value after write w, given that w hits it. */
static uint64_t written(const Sim *s, const Write *w, uint64_t old)
{
    uint64_t data = s->value[w->data];
    if (!w->lanes) return data;
    uint64_t m = lane_mask(&s->c->states.data[w->state], s->value[w->lanes]);
    return (old & ~m) | (data & m);
}

static bool hits(const Sim *s, const Write *w, uint64_t row)
{
    const State *st = &s->c->states.data[w->state];
    if (!s->value[w->en] || row >= st->rows || (st->has_hard && row == st->hard_row)) return false;
    return (w->index ? s->value[w->index] : 0) == row;
}

static uint64_t read_row(const Sim *s, const Ins *in)
{
    const State *st = &s->c->states.data[in->op.imm];
    uint64_t row = in->op.nargs ? s->value[in->a] : 0;
    uint64_t v = row < st->rows ? s->row[in->op.imm][row] : 0;
    if (st->forward && s->write[in->op.imm] && hits(s, s->write[in->op.imm], row)) v = written(s, s->write[in->op.imm], v);
    return v;
}

static uint64_t select_one(const Sim *s, const Ins *in)
{
    const Ref *a = &s->c->args.data[in->op.arg0];
    uint64_t v = 0;
    unsigned hot = 0;
    for (uint32_t i = 0; i < in->op.nargs; i += 2)
        if (s->value[a[i]]) v = s->value[a[i + 1]], hot++;
    if (hot > 1) die("two arms of an exclusive selection at once (value %u, source line %u, step %llu)", in->dst, in->op.span.line, (unsigned long long)s->steps);
    return v;
}

static uint64_t join(const Sim *s, const Ins *in)
{
    const Ref *a = &s->c->args.data[in->op.arg0];
    uint64_t v = 0;
    for (uint32_t i = 0; i < in->op.nargs; i++) v = v << op_at(s->c, a[i])->width | s->value[a[i]];
    return v;
}

static int64_t sign(uint64_t v, unsigned width) { return (int64_t)(v << (64 - width)) >> (64 - width); }

static void run(Sim *s)
{
    uint64_t *v = s->value;
    for (uint32_t i = 0; i < s->code.n; i++) {
        const Ins *in = &s->code.data[i];
        uint64_t x = v[in->a], y = v[in->b], r;
        switch (in->op.kind) {
        case OP_READ: r = read_row(s, in); break;
        case OP_ADD: r = x + y; break;
        case OP_SUB: r = x - y; break;
        case OP_MUL: r = x * y; break;
        case OP_AND: r = x & y; break;
        case OP_OR: r = x | y; break;
        case OP_XOR: r = x ^ y; break;
        case OP_NOT: r = ~x; break;
        case OP_SHL: r = y >= in->op.width ? 0 : x << y; break;
        case OP_LSHR: r = y >= in->op.width ? 0 : x >> y; break;
        case OP_ASHR: r = (uint64_t)(sign(x, in->op.width) >> (y >= in->op.width ? in->op.width - 1u : y)); break;
        case OP_EQ: r = x == y; break;
        case OP_ULT: r = x < y; break;
        case OP_SLT: r = sign(x, in->width) < sign(y, in->width); break;
        case OP_MUX: r = x ? y : v[in->c]; break;
        case OP_PMUX: r = select_one(s, in); break;
        case OP_CAT: r = join(s, in); break;
        case OP_SLICE: r = x >> in->op.imm; break;
        case OP_SEXT: r = (uint64_t)sign(x, in->width); break;
        default: r = x; /* ZEXT */
        }
        v[in->dst] = r & mask64(in->op.width);
    }
}

void sim_commit(Sim *s, const bool *skip)
{
    for (uint32_t i = 0; i < s->c->writes.n; i++) {
        const Write *w = &s->c->writes.data[i];
        if (skip && skip[w->state]) continue;
        uint64_t row = w->index ? s->value[w->index] : 0;
        if (hits(s, w, row)) s->row[w->state][row] = written(s, w, s->row[w->state][row]);
    }
}

uint32_t sim_eval(Sim *s, const Event **events, bool *retired)
{
    if (!s->ready) compile(s);
    run(s);
    s->events.n = 0;
    for (uint32_t i = 0; i < s->c->emits.n; i++) {
        const Emit *e = &s->c->emits.data[i];
        if (s->value[e->en]) vec_push(&s->events, ((Event){e->role, i, e->payload ? s->value[e->payload] : 0}));
    }
    s->steps++;
    if (events) *events = s->events.data;
    if (retired) *retired = !s->c->retire || s->value[s->c->retire];
    return s->events.n;
}

uint32_t sim_step(Sim *s, const Event **events, bool *retired)
{
    uint32_t n = sim_eval(s, events, retired);
    sim_commit(s, NULL);
    return n;
}

uint64_t sim_value(const Sim *s, Ref r) { return s->value[r]; }
uint64_t sim_get(const Sim *s, uint32_t state, uint32_t row) { return s->row[state][row]; }
void sim_set(Sim *s, uint32_t state, uint32_t row, uint64_t value)
{
    s->row[state][row] = value & mask64(s->c->states.data[state].width);
}
