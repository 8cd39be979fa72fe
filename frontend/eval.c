/* eval.c: the netlist interpreter, the first oracle. Needs a circuit that circuit_check accepts.
 *
 * The code of a step (eval_code.c) runs over 64-bit slots, one per op and one per register; files and memories have rows
 * of 1, 2, 4 or 8 bytes. sim_value does not look at slots but for watched values: it evaluates the op again by op_value,
 * from the state before the step, which an undo log keeps. So the two ways check each other (netlist_random.c). */
#include "eval.h"
#include <stdlib.h>
#include <string.h>

/* ---- state ---- */

static bool is_scalar(const State *s) { return s->kind == ST_REG || s->kind == ST_HOST; }

static uint64_t store_get(const Store *st, uint64_t row)
{
    if (row >= st->nrows) return 0;
    switch (st->shift) {
    case 0: return ((const uint8_t *)st->rows)[row];
    case 1: return ((const uint16_t *)st->rows)[row];
    case 2: return ((const uint32_t *)st->rows)[row];
    default: return ((const uint64_t *)st->rows)[row];
    }
}

static void store_set(Store *st, uint64_t row, uint64_t v)
{
    switch (st->shift) {
    case 0: ((uint8_t *)st->rows)[row] = (uint8_t)v; break;
    case 1: ((uint16_t *)st->rows)[row] = (uint16_t)v; break;
    case 2: ((uint32_t *)st->rows)[row] = (uint32_t)v; break;
    default: ((uint64_t *)st->rows)[row] = v;
    }
}

uint64_t sim_get(const Sim *s, uint32_t state, uint32_t row)
{
    if (is_scalar(&s->c->states.data[state])) return row ? 0 : s->slot[s->c->ops.n + state];
    return store_get(&s->store[state], row);
}

static void put(Sim *s, uint32_t state, uint32_t row, uint64_t v)
{
    if (is_scalar(&s->c->states.data[state])) s->slot[s->c->ops.n + state] = v;
    else store_set(&s->store[state], row, v);
}

void sim_set(Sim *s, uint32_t state, uint32_t row, uint64_t value)
{
    const State *st = &s->c->states.data[state];
    if (row < st->rows && !(st->has_hard && row == st->hard_row)) put(s, state, row, value & mask64(st->width));
}

/* Rows are little-endian in the image; it is read in chunks. */
static void init_image(Sim *s, uint32_t state, const Image *im)
{
    enum { CHUNK = 1 << 16 };
    const State *st = &s->c->states.data[state];
    uint32_t bytes = st->width / 8, most = CHUNK / bytes;
    uint8_t *buf = xrealloc(NULL, CHUNK);
    for (uint32_t row = 0; row < st->rows; row += most) {
        uint32_t n = st->rows - row < most ? st->rows - row : most;
        im->read(im, st->base + (uint64_t)row * bytes, buf, (size_t)n * bytes);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v = 0;
            for (uint32_t k = bytes; k-- > 0;) v = v << 8 | buf[i * bytes + k];
            if (v) put(s, state, row + i, v);
        }
    }
    free(buf);
}

static void init_state(Sim *s, uint32_t i, const Image *im)
{
    const State *st = &s->c->states.data[i];
    uint64_t v = st->nrow_init ? st->row_init[0] : 0;
    if (st->init == INIT_ROWS)
        for (uint32_t r = 0; r < st->nrow_init; r++) put(s, i, r, st->row_init[r]);
    if (st->init == INIT_IMAGE && im) init_image(s, i, im);
    if (st->init == INIT_ENTRY && im) put(s, i, 0, im->entry >> st->init_shift & mask64(st->width));
    if (st->init == INIT_SYMBOL) {
        if (im && im->symbol) im->symbol(im, st->symbol, &v);
        put(s, i, 0, v >> st->init_shift & mask64(st->width));
    }
    if (st->has_hard) put(s, i, st->hard_row, st->hard_value);
}

void *sim_zeroed(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size); /* calloc: the pages of a large memory are not touched */
    if (!p) die("out of memory (%zu x %zu bytes)", n, size);
    return p;
}

static void make_stores(Sim *s, const Image *image)
{
    s->store = sim_zeroed(s->c->states.n, sizeof *s->store);
    for (uint32_t i = 0; i < s->c->states.n; i++) {
        const State *st = &s->c->states.data[i];
        s->store[i].shift = st->width <= 8 ? 0 : clog2(st->width) - 3;
        if (!is_scalar(st)) {
            s->store[i].nrows = st->rows;
            s->store[i].rows = sim_zeroed(st->rows, (size_t)1 << s->store[i].shift);
        }
        init_state(s, i, image);
    }
}

Sim *sim_new(const Circuit *c, const Image *image)
{
    Sim *s = sim_zeroed(1, sizeof *s);
    s->c = c;
    s->slot = sim_zeroed(c->ops.n + c->states.n, sizeof *s->slot);
    s->loc = sim_zeroed(c->ops.n, sizeof *s->loc);
    s->memo = sim_zeroed(c->ops.n, sizeof *s->memo);
    s->memo_step = sim_zeroed(c->ops.n, sizeof *s->memo_step);
    s->watched = sim_zeroed(c->ops.n, sizeof *s->watched);
    s->write = sim_zeroed(c->states.n, sizeof *s->write);
    for (uint32_t i = 0; i < c->writes.n; i++) s->write[c->writes.data[i].state] = &c->writes.data[i];
    make_stores(s, image);
    return s;
}

void sim_free(Sim *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->c->states.n; i++) free(s->store[i].rows);
    void *parts[] = {s->slot, s->loc, s->store, s->write, s->watched, s->memo, s->memo_step,
                     s->code.data, s->list.data, s->changes.data, s->events.data, s};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

void sim_watch(Sim *s, Ref r)
{
    if (!r || s->watched[r]) return;
    s->watched[r] = true;
    s->ready = false;
}

/* ---- running ---- */

__attribute__((noreturn, cold)) static void not_exclusive(const Sim *s, Ref r)
{
    Span p = op_at(s->c, r)->span;
    die("two arms of an exclusive selection at once (value %u, source %u, line %u, column %u, step %llu)", r, p.file,
        p.line, p.col, (unsigned long long)s->steps);
}

static uint64_t val(const Sim *s, Ref r) { return s->slot[s->loc[r]]; }

/* The row's value after write w of these operands, given that the row is written. */
static uint64_t written(const Sim *s, const Write *w, uint64_t old, uint64_t data, uint64_t lanes)
{
    const State *st = &s->c->states.data[w->state];
    uint64_t m = 0;
    if (!w->lanes) return data;
    for (unsigned k = 0; k * st->lane < st->width; k++)
        if (lanes >> k & 1) m |= mask64(st->lane) << (k * st->lane);
    return (old & ~m) | (data & m);
}

static bool writable(const State *st, uint64_t row) { return row < st->rows && !(st->has_hard && row == st->hard_row); }

/* A row as a READ of a forward state sees it. */
static uint64_t forward_row(const Sim *s, uint32_t state, uint64_t row)
{
    const Write *w = s->write[state];
    const State *st = &s->c->states.data[state];
    uint64_t old = row < st->rows ? sim_get(s, state, (uint32_t)row) : 0;
    if (!val(s, w->en) || (w->index ? val(s, w->index) : 0) != row || !writable(st, row)) return old;
    return written(s, w, old, val(s, w->data), w->lanes ? val(s, w->lanes) : 0);
}

/* The arm whose condition is set, n where none is. */
static inline uint32_t find_arm(const Sim *s, const Ins *i)
{
    const uint32_t *list = s->list.data + i->a;
    uint32_t arm = i->b, set = 0;
    for (uint32_t j = 0; j < i->b; j++)
        if (s->slot[list[2 * j]]) arm = j, set++;
    if (set > 1) not_exclusive(s, i->dst);
    return arm;
}

/* One instruction after the other; labels[] is in the order of Code. */
static void execute(Sim *s)
{
    static const void *const labels[] = {
        &&add, &&sub, &&mul, &&and, &&or, &&and_list, &&or_list, &&xor, &&not, &&shl, &&lshr, &&ashr, &&eq, &&ult,
        &&slt, &&mux, &&pmux, &&cat, &&slice, &&sext, &&row, &&forward, &&move, &&jump, &&jzero, &&choose, &&end};
    uint64_t *v = s->slot;
    const Ins *code = s->code.data, *i = code;
    uint32_t arm;
#define A v[i->a]
#define B v[i->b]
#define NEXT goto *labels[(++i)->code]
#define SET(x) do { v[i->dst] = (x); NEXT; } while (0)
    goto *labels[i->code];
add: SET((A + B) & i->k);
sub: SET((A - B) & i->k);
mul: SET((A * B) & i->k);
and: SET(A & B);
or: SET(A | B);
and_list:
or_list: {
    const uint32_t *list = s->list.data + i->a;
    uint64_t x = v[list[0]];
    if (i->code == I_AND_LIST)
        for (uint32_t j = 1; j < i->b; j++) x &= v[list[j]];
    else
        for (uint32_t j = 1; j < i->b; j++) x |= v[list[j]];
    SET(x);
}
xor: SET(A ^ B);
not: SET(~A & i->k);
shl: SET(B >= i->c ? 0 : A << B & i->k);
lshr: SET(B >= i->c ? 0 : A >> B);
ashr: SET((uint64_t)((int64_t)(A << i->c) >> (B > 63 - i->c ? 63 - i->c : B)) >> i->c & i->k);
eq: SET(A == B);
ult: SET(A < B);
slt: SET((int64_t)(A << i->c) < (int64_t)(B << i->c));
mux: SET(v[i->c] ? A : B);
pmux:
    arm = find_arm(s, i);
    SET(arm < i->b ? v[s->list.data[i->a + 2 * arm + 1]] : 0);
cat: SET(A << i->c | B);
slice: SET(A >> i->c & i->k);
sext: SET((uint64_t)((int64_t)(A << i->c) >> i->c) & i->k);
row: SET(store_get(&s->store[i->c], A));
forward: SET(forward_row(s, i->c, i->b ? A : 0));
move: SET(A);
jump:
    i = code + i->k;
    goto *labels[i->code];
jzero:
    if (A) NEXT;
    i = code + i->k;
    goto *labels[i->code];
choose:
    arm = find_arm(s, i);
    if (arm == i->b) SET(0);
    i = code + s->list.data[i->a + 2 * arm + 1];
    goto *labels[i->code];
end:;
#undef A
#undef B
#undef NEXT
#undef SET
}

static void note_write(Sim *s, const Write *w)
{
    uint64_t row = w->index ? val(s, w->index) : 0;
    if (!writable(&s->c->states.data[w->state], row)) return;
    uint64_t old = sim_get(s, w->state, (uint32_t)row);
    uint64_t now = written(s, w, old, val(s, w->data), w->lanes ? val(s, w->lanes) : 0);
    vec_push(&s->changes, ((Change){w->state, (uint32_t)row, old, now}));
}

/* All data are fetched before the first row changes: they may lie in registers. */
void sim_commit(Sim *s, const bool *skip)
{
    const Circuit *c = s->c;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        if (val(s, w->en) && !(skip && skip[w->state])) note_write(s, w);
    }
    for (uint32_t i = 0; i < s->changes.n; i++) {
        const Change *x = &s->changes.data[i];
        put(s, x->state, x->row, x->now);
    }
}

void sim_undo(Sim *s)
{
    for (uint32_t i = s->changes.n; i-- > 0;) put(s, s->changes.data[i].state, s->changes.data[i].row, s->changes.data[i].old);
    s->changes.n = 0;
}

uint32_t sim_eval(Sim *s, const Event **events, bool *retired)
{
    const Circuit *c = s->c;
    if (!s->ready) sim_compile(s);
    s->steps++;
    s->changes.n = s->events.n = 0;
    execute(s);
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        if (val(s, e->en)) vec_push(&s->events, ((Event){e->role, i, e->payload ? val(s, e->payload) : 0}));
    }
    if (retired) *retired = !c->retire || val(s, c->retire);
    if (events) *events = s->events.data;
    return s->events.n;
}

uint32_t sim_step(Sim *s, const Event **events, bool *retired)
{
    uint32_t n = sim_eval(s, events, retired);
    sim_commit(s, NULL);
    return n;
}

/* ---- values after the fact ---- */

static uint64_t old_row(const Sim *s, uint32_t state, uint64_t row)
{
    for (uint32_t i = 0; i < s->changes.n; i++)
        if (s->changes.data[i].state == state && s->changes.data[i].row == row) return s->changes.data[i].old;
    return row >= s->c->states.data[state].rows ? 0 : sim_get(s, state, (uint32_t)row);
}

/* What a READ gave, from the values of what it needs. */
static uint64_t read_again(const Sim *s, Ref r, uint64_t row)
{
    uint32_t state = (uint32_t)op_at(s->c, r)->imm;
    uint64_t old = old_row(s, state, row);
    const Write *w = sim_seen_write(s, r);
    if (!w || !s->memo[w->en] || (w->index ? s->memo[w->index] : 0) != row) return old;
    if (!writable(&s->c->states.data[state], row)) return old;
    return written(s, w, old, s->memo[w->data], w->lanes ? s->memo[w->lanes] : 0);
}

static bool known(const Sim *s, Ref r) { return s->memo_step[r] == s->steps + 1; }

static void value_now(const Sim *s, Ref r)
{
    const Op *op = op_at(s->c, r);
    uint64_t small[8], *v = op->nargs > 8 ? xrealloc(NULL, op->nargs * sizeof *v) : small;
    unsigned ws[8], *w = op->nargs > 8 ? xrealloc(NULL, op->nargs * sizeof *w) : ws;
    unsigned set = 0;
    for (uint32_t i = 0; i < op->nargs; i++) {
        Ref a = arg_at(s->c, r, i);
        v[i] = s->memo[a];
        w[i] = op_at(s->c, a)->width;
        if (op->kind == OP_PMUX && i % 2 == 0) set += v[i] != 0;
    }
    if (set > 1) not_exclusive(s, r);
    if (op->kind == OP_READ) s->memo[r] = read_again(s, r, op->nargs ? v[0] : 0);
    else s->memo[r] = op->kind == OP_TOKEN ? 0 : op_value(op->kind, op->width, op->imm, op->nargs, v, w);
    s->memo_step[r] = s->steps + 1;
    if (v != small) free(v);
    if (w != ws) free(w);
}

uint64_t sim_value(const Sim *s, Ref r)
{
    bool moved = s->loc[r] >= s->c->ops.n; /* a register's own slot: it may have been written since */
    if (s->watched[r] && s->ready && !moved) return val(s, r);
    VEC(Ref) todo = {0};
    if (!known(s, r)) vec_push(&todo, r);
    while (todo.n) {
        Ref x = todo.data[todo.n - 1], d;
        uint32_t before = todo.n;
        for (uint32_t i = 0; (d = sim_dependency(s, x, i)); i++)
            if (!known(s, d)) vec_push(&todo, d);
        if (todo.n > before) continue;
        value_now(s, x);
        todo.n--;
    }
    free(todo.data);
    return s->memo[r];
}
