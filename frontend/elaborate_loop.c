/* elaborate_loop.c: `iterate`. N iterations take N passes of the machine; the last of them also makes everything else
 * that the step does, and only that pass retires.
 *
 * A hidden counter tells the pass; while it is 0 the carried values are their initial expressions, afterwards those of
 * hidden registers, so nothing has to be reset but the counter. All effects that may happen together with an inner pass
 * wait for the last one (not_waiting in elaborate_emit.c). Loops that exclude each other share hidden registers. */
#include "elaborate.h"

typedef struct {
    const Node *n;
    Path *path;      /* of the whole statement */
    Slot *count;     /* NULL when there is one iteration */
    Slot *carried;   /* one for each carried value, in order */
    Slot **store;    /* their hidden registers */
    Big low, passes;
} Iterate;

/* The hidden register number `k` of this width. */
static Slot *hidden(Elab *e, const char *what, unsigned width, unsigned k)
{
    const char *text = xfmt("loop.%s%u_%u", what, width, k), *name = intern(text, __builtin_strlen(text));
    for (uint32_t i = 0; i < e->hidden.n; i++)
        if (e->c->states.data[e->hidden_state.data[i]].name == name) return e->hidden.data[i];
    State st = { .name = name, .kind = ST_REG, .width = width, .lane = width, .rows = 1, .hidden = true };
    uint32_t state = vec_push(&e->c->states, st);
    Slot *s = xalloc(sizeof *s);
    s->width = width;
    s->now = ir_read(e->c, state, 0, (Span){ 0 });
    vec_push(&e->hidden, s);
    vec_push(&e->hidden_state, state);
    return s;
}

static bool loop_bounds(Elab *e, Iterate *it)
{
    Big high;
    if (!eval_const(e, it->n->a, &it->low) || !eval_const(e, it->n->b, &high)) return false;
    it->passes = high - it->low;
    if (it->passes >= 1 && it->passes <= 65536 && it->low >= 0 && high <= 65536) return true;
    fail(e, it->n->span, "found %s iterations from %s, expected 1 to 65536", big_text(it->passes), big_text(it->low));
    return false;
}

static bool alone(Elab *e, const Node *n)
{
    for (uint32_t i = 0; i < e->loops.n; i++)
        if (!path_exclusive(e, e->path, e->loops.data[i].wait->up)) {
            unsigned before = error_count();
            fail(e, n->span, "two loops may run in one step");
            if (error_count() > before) note_at(e->loops.data[i].span, "the other loop");
            return false;
        }
    return true;
}

/* The carried values as this pass finds them. */
static bool bind_carried(Elab *e, Iterate *it)
{
    const NodeList *l = &it->n->list;
    it->carried = xalloc((l->n + 1) * sizeof *it->carried);
    it->store = xalloc((l->n + 1) * sizeof *it->store);
    Ref first = it->count ? ir_eq(e->c, it->count->now, ir_const(e->c, it->count->width, 0)) : 0;
    bool good = true;
    for (uint32_t i = 0; i < l->n; i++) {
        unsigned width = type_width(e, l->data[i]->a);
        Ref init = width ? eval_bits(e, l->data[i]->b, width) : 0;
        if (!init) good = false;
        if (!good) continue;
        unsigned k = 0;
        for (uint32_t j = 0; j < i; j++) k += it->carried[j].width == width;
        it->carried[i].width = width;
        it->carried[i].now = init;
        if (!it->count) continue;
        it->store[i] = hidden(e, "carry", width, k);
        it->carried[i].now = ir_mux(e->c, first, init, it->store[i]->now);
    }
    for (uint32_t i = 0; i < l->n && good; i++)
        local_add(e, l->data[i]->name, bits_val(e, it->carried[i].now), &it->carried[i]);
    return good;
}

/* The loop's index: the counter plus the lower bound. */
static void bind_index(Elab *e, const Iterate *it)
{
    Val v = { .kind = V_INT, .i = it->low };
    if (it->count) {
        unsigned width = clog2((uint64_t)(it->low + it->passes));
        Ref r = ir_zext(e->c, it->count->now, width);
        v = bits_val(e, it->low ? ir_add(e->c, r, ir_const(e->c, width, (uint64_t)it->low)) : r);
    }
    local_add(e, it->n->name, v, NULL);
}

static void run_inner(Elab *e, Iterate *it)
{
    bool outer = e->inner;
    e->inner = true;
    exec_block(e, it->n->d);
    e->inner = outer;
    Ref *next = xalloc((it->n->list.n + 1) * sizeof *next);
    for (uint32_t i = 0; i < it->n->list.n; i++) next[i] = slot_next(e, &it->carried[i]);
    for (uint32_t i = 0; i < it->n->list.n; i++) {
        it->carried[i].now = next[i];
        it->carried[i].effects.n = 0;
    }
}

/* Is this the last pass? */
static Ref last_pass(Elab *e, const Iterate *it)
{
    Ref last = it->count ? ir_eq(e->c, it->count->now, ir_const(e->c, it->count->width, (uint64_t)it->passes - 1))
                         : ir_const(e->c, 1, 1);
    Ref until = it->n->c ? eval_bits(e, it->n->c, 1) : 0;
    return until ? ir_or(e->c, last, until) : last;
}

static void store_pass(Elab *e, const Iterate *it, Path *wait, Ref last)
{
    bool outer = e->inner;
    Ref one = ir_const(e->c, it->count->width, 1), zero = ir_const(e->c, it->count->width, 0);
    Ref up = ir_add(e->c, it->count->now, one);
    bool wraps = !it->n->c && it->passes == (Big)1 << it->count->width;
    e->inner = true;
    slot_assign(e, it->count, wraps ? up : ir_mux(e->c, last, zero, up), it->n->span);
    e->path = wait;
    for (uint32_t i = 0; i < it->n->list.n; i++) slot_assign(e, it->store[i], it->carried[i].now, it->n->span);
    e->inner = outer;
    e->path = it->path;
}

void exec_iterate(Elab *e, const Node *n)
{
    Iterate it = { .n = n, .path = e->path };
    if (e->inner || e->no_effects) {
        fail(e, n->span, e->inner ? "found iterate inside iterate" : "found iterate in a constant");
        return;
    }
    if (!loop_bounds(e, &it) || !alone(e, n)) return;
    if (it.passes > 1) it.count = hidden(e, "count", clog2((uint64_t)it.passes), 0);
    Local *mark = e->frame->locals;
    if (bind_carried(e, &it)) {
        bind_index(e, &it);
        run_inner(e, &it);
        Ref last = last_pass(e, &it);
        uint32_t group = ++e->groups;
        if (it.count) {
            Path *wait = path_child(e, it.path, ir_not(e->c, last), group, 0);
            Loop loop = { wait, n->span };
            if (wait != it.path) vec_push(&e->loops, loop);
            store_pass(e, &it, wait, last);
        }
        e->path = path_child(e, it.path, last, group, 1);
        Path *start = e->path;
        uint32_t returns = e->frame->returns.n;
        if (n->e) exec_block(e, n->e);
        Path *starts[2] = { start, it.path }, *ends[2] = { e->path, it.path };
        e->path = path_join(e, it.path, starts, ends, 2, returns);
    }
    e->frame->locals = mark;
}
