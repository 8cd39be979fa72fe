/* elaborate_loop.c: `iterate`. N iterations take N passes of the machine; the last of them also makes everything else
 * that the step does, and only that pass retires.
 *
 * A hidden counter tells the pass; while it is 0 the carried values are their initial expressions, afterwards those of
 * hidden registers, so nothing has to be reset but the counter. All effects that may happen together with an inner pass
 * wait for the last one (not_waiting in elaborate_emit.c). Loops that exclude each other share hidden registers.
 *
 * A carried value that only takes in new low bits, v := {v[..:0], digit}, need not be carried whole: the hidden register
 * holds the last digit, and the next pass puts it into its place among the others (`digits`, one lane per pass) while
 * it reads them. Such a pass costs the model a digit, not a word. */
#include "elaborate.h"
#include <string.h>

typedef struct {
    const Node *n;
    Path *path;      /* of the whole statement */
    Slot *count;     /* NULL when there is one iteration */
    Slot *carried;   /* one for each carried value, in order */
    Slot **store;    /* their hidden registers */
    unsigned *digit; /* bits that each takes in per pass; 0: carried whole */
    Slot **lanes;    /* of those: all digits, that of the first pass highest */
    Big low, passes;
} Iterate;

/* The hidden register number `k` of this kind and shape. */
static Slot *hidden(Elab *e, const char *what, State st, unsigned k)
{
    const char *text = xfmt("loop.%s%u_%u", what, st.width, k);
    st.name = intern(text, strlen(text));
    for (uint32_t i = 0; i < e->hidden.n; i++)
        if (e->c->states.data[e->hidden_state.data[i]].name == st.name) return e->hidden.data[i];
    st.kind = ST_REG;
    st.rows = 1;
    st.hidden = true;
    uint32_t state = vec_push(&e->c->states, st);
    Slot *s = xalloc(sizeof *s);
    s->width = st.width;
    s->now = ir_read(e->c, state, 0, (Span){ 0 });
    vec_push(&e->hidden, s);
    vec_push(&e->hidden_state, state);
    return s;
}

static Slot *hidden_word(Elab *e, const char *what, unsigned width, unsigned k)
{
    return hidden(e, what, (State){ .width = width, .lane = width }, k);
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

static Ref is_pass(Elab *e, const Iterate *it, Big k)
{
    return ir_eq(e->c, it->count->now, ir_const(e->c, it->count->width, (uint64_t)k));
}

/* How many carried values before number i have its width. */
static unsigned rank(const Iterate *it, uint32_t i)
{
    unsigned k = 0;
    for (uint32_t j = 0; j < i; j++) k += it->carried[j].width == it->carried[i].width;
    return k;
}

/* What the digits say in this pass: those of the passes before it, the last one lowest. */
static Ref digits_so_far(Elab *e, Iterate *it, uint32_t i)
{
    unsigned w = it->carried[i].width, k = it->digit[i], n = (w + k - 1) / k;
    it->store[i] = hidden_word(e, "digit", k, i);
    const char *shape = xfmt("digits%u_", k);
    it->lanes[i] = hidden(e, shape, (State){ .width = n * k, .lane = k, .forward = true }, i);
    Ref *arg = xalloc(2 * (n + 1) * sizeof *arg);
    uint32_t used = 0;
    for (unsigned p = 1; p <= n && p < it->passes; p++) {
        arg[used++] = is_pass(e, it, p);
        Ref top = ir_slice(e->c, it->lanes[i]->now, (n - p) * k, p * k < w ? p * k : w);
        arg[used++] = ir_zext(e->c, top, w);
    }
    return ir_op(e->c, OP_PMUX, w, 0, used, arg, it->n->span);
}

/* In every pass but the first the last digit goes to its lane. */
static void place_digit(Elab *e, Iterate *it, uint32_t i)
{
    unsigned k = it->digit[i], n = it->lanes[i]->width / k;
    Ref data[64], on[64];
    for (unsigned p = 1; p <= n; p++) {
        data[p - 1] = it->store[i]->now;
        on[p - 1] = p < it->passes ? is_pass(e, it, p) : ir_const(e->c, 1, 0); /* highest lane first */
    }
    Path *later = path_child(e, it->path, ir_not(e->c, is_pass(e, it, 0)), 0, 0);
    Effect x = { .path = later, .inner = true, .span = it->n->span };
    x.data = ir_op(e->c, OP_CAT, n * k, 0, n, data, it->n->span);
    x.lanes = ir_op(e->c, OP_CAT, n, 0, n, on, it->n->span);
    vec_push(&it->lanes[i]->effects, x);
}

/* The carried values as this pass finds them. `trial`: as values that nothing is known of. */
static bool bind_carried(Elab *e, Iterate *it, bool trial)
{
    const NodeList *l = &it->n->list;
    Ref first = it->count ? is_pass(e, it, 0) : 0;
    bool good = true;
    for (uint32_t i = 0; i < l->n; i++) {
        unsigned width = type_width(e, l->data[i]->a);
        Ref init = width ? eval_bits(e, l->data[i]->b, width) : 0;
        uint64_t k;
        if (!init) good = false;
        if (!good) continue;
        it->carried[i] = (Slot){ .width = width, .now = init };
        if (!it->count) continue;
        if (trial) {
            it->digit[i] = ir_is_const(e->c, init, &k) && !k; /* may be one */
            it->carried[i].now = ir_op(e->c, OP_SHL, width, 0, 2, (Ref[]){ ir_const(e->c, width, i + 1), it->count->now }, it->n->span);
        } else if (it->digit[i]) {
            it->carried[i].now = digits_so_far(e, it, i);
        } else {
            it->store[i] = hidden_word(e, "carry", width, rank(it, i));
            it->carried[i].now = ir_mux(e->c, first, init, it->store[i]->now);
        }
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

/* Bits that `next` takes in below those of `now`; 0: it is something else. It may stay as it is in the last pass. */
static unsigned digit_bits(Elab *e, const Iterate *it, Ref now, Ref next)
{
    const Op *op = op_at(e->c, next);
    bool hold = op->kind == OP_MUX && arg_at(e->c, next, 1) == now && arg_at(e->c, next, 0) == is_pass(e, it, it->passes - 1);
    if (hold) next = arg_at(e->c, next, 2), op = op_at(e->c, next);
    if (op->kind != OP_CAT) return 0;
    const Op *kept = op_at(e->c, arg_at(e->c, next, 0));
    if (kept->kind != OP_SLICE || kept->imm || arg_at(e->c, arg_at(e->c, next, 0), 0) != now) return 0;
    unsigned w = op->width, k = w - kept->width, n = (w + k - 1) / k;
    return n * k <= 64 && it->passes - 1 <= n && k < w ? k : 0;
}

/* Runs the body once for nothing, to see which carried values only take in digits. */
static void find_digits(Elab *e, Iterate *it)
{
    Local *mark = e->frame->locals;
    bool effects = e->no_effects, mute = e->mute;
    e->no_effects = e->mute = true;
    uint32_t n = it->n->list.n;
    if (it->count && bind_carried(e, it, true)) {
        Ref *now = xalloc((n + 1) * sizeof *now);
        for (uint32_t i = 0; i < n; i++) now[i] = it->carried[i].now;
        bind_index(e, it);
        run_inner(e, it);
        for (uint32_t i = 0; i < n; i++)
            if (it->digit[i]) it->digit[i] = digit_bits(e, it, now[i], it->carried[i].now);
    } else memset(it->digit, 0, n * sizeof *it->digit);
    e->no_effects = effects;
    e->mute = mute;
    e->frame->locals = mark;
}

/* Is this the last pass? */
static Ref last_pass(Elab *e, const Iterate *it)
{
    Ref last = it->count ? ir_eq(e->c, it->count->now, ir_const(e->c, it->count->width, (uint64_t)it->passes - 1))
                         : ir_const(e->c, 1, 1);
    Ref until = it->n->c ? eval_bits(e, it->n->c, 1) : 0;
    return until ? ir_or(e->c, last, until) : last;
}

static void store_pass(Elab *e, Iterate *it, Path *wait, Ref last)
{
    bool outer = e->inner;
    Ref one = ir_const(e->c, it->count->width, 1), zero = ir_const(e->c, it->count->width, 0);
    Ref up = ir_add(e->c, it->count->now, one);
    bool wraps = !it->n->c && it->passes == (Big)1 << it->count->width;
    e->inner = true;
    slot_assign(e, it->count, wraps ? up : ir_mux(e->c, last, zero, up), it->n->span);
    e->path = wait;
    for (uint32_t i = 0; i < it->n->list.n; i++) {
        Ref next = it->carried[i].now;
        if (it->digit[i]) next = ir_slice(e->c, next, 0, it->digit[i]);
        slot_assign(e, it->store[i], next, it->n->span);
    }
    e->inner = outer;
    e->path = it->path;
    for (uint32_t i = 0; i < it->n->list.n; i++)
        if (it->digit[i]) place_digit(e, it, i);
}

/* What `then` sees of a value that stays as it is in the last pass. */
static void keep_last(Elab *e, Iterate *it)
{
    for (uint32_t i = 0; i < it->n->list.n && it->count && !it->n->c; i++) {
        const Op *op = op_at(e->c, it->carried[i].now);
        if (op->kind == OP_MUX && arg_at(e->c, it->carried[i].now, 0) == is_pass(e, it, it->passes - 1))
            it->carried[i].now = arg_at(e->c, it->carried[i].now, 1);
    }
}

void exec_iterate(Elab *e, const Node *n)
{
    Iterate it = { .n = n, .path = e->path };
    if (e->inner || e->no_effects) {
        fail(e, n->span, e->inner ? "found iterate inside iterate" : "found iterate in a constant");
        return;
    }
    if (!loop_bounds(e, &it) || !alone(e, n)) return;
    if (it.passes > 1) it.count = hidden_word(e, "count", clog2((uint64_t)it.passes), 0);
    uint32_t carried = n->list.n + 1;
    it.carried = xalloc(carried * sizeof *it.carried);
    it.store = xalloc(carried * sizeof *it.store);
    it.digit = xalloc(carried * sizeof *it.digit);
    it.lanes = xalloc(carried * sizeof *it.lanes);
    find_digits(e, &it);
    Local *mark = e->frame->locals;
    if (bind_carried(e, &it, false)) {
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
        keep_last(e, &it);
        uint32_t returns = e->frame->returns.n;
        if (n->e) exec_block(e, n->e);
        Path *starts[2] = { start, it.path }, *ends[2] = { e->path, it.path };
        e->path = path_join(e, it.path, starts, ends, 2, returns);
    }
    e->frame->locals = mark;
}
