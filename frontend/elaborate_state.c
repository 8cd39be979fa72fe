/* elaborate_state.c: declarations become states of the circuit; assignments to registers and carried values.
 *
 * The width of a stored row is the widest view that the machine uses, its write granularity (`lane`) the narrowest view
 * that is assigned, so a walk over all bodies comes first. */
#include "elaborate.h"
#include <string.h>

typedef struct {
    unsigned widest, narrowest_write;
} Views;

Info *info_of(const Elab *e, const Node *decl)
{
    return decl->at ? e->infos.data[decl->at - 1] : NULL;
}

/* ---- which views are used ---- */
static void find_views(const Node *n, const char *name, Views *v)
{
    if (!n) return;
    const Node *t = n->kind == N_ASSIGN && n->a->kind == N_INDEX ? n->a->a : NULL;
    if (n->kind == N_MEMBER && n->value && n->a->kind == N_NAME && n->a->decl && n->a->name == name &&
        n->value > v->widest)
        v->widest = (unsigned)n->value;
    if (t && t->kind == N_MEMBER && t->value && t->a->decl && t->a->name == name &&
        (!v->narrowest_write || t->value < v->narrowest_write))
        v->narrowest_write = (unsigned)t->value;
    find_views(n->a, name, v);
    find_views(n->b, name, v);
    find_views(n->c, name, v);
    find_views(n->d, name, v);
    find_views(n->e, name, v);
    for (uint32_t i = 0; i < n->list.n; i++) find_views(n->list.data[i], name, v);
}

static bool power_of_two(uint64_t n) { return n && !(n & (n - 1)); }

/* ---- initial values ---- */
static void init_rows(Elab *e, State *st, const Info *s, const Node *init)
{
    if (init->kind != N_CAT) {
        fail(e, init->span, "expected initial rows: { value, value, .. }");
        return;
    }
    unsigned per = s->row / s->elem;
    uint64_t elems = (uint64_t)s->rows * per;
    if (init->list.n > elems) {
        fail(e, init->span, "found %u initial values for %llu elements", init->list.n, (unsigned long long)elems);
        return;
    }
    st->init = INIT_ROWS;
    st->nrow_init = (init->list.n + per - 1) / per;
    st->row_init = xalloc((st->nrow_init + 1) * sizeof *st->row_init);
    for (uint32_t i = 0; i < init->list.n; i++) {
        Big k;
        Ref r = 0;
        if (eval_const(e, init->list.data[i], &k))
            r = to_bits(e, (Val){ .kind = V_INT, .i = k }, s->elem, init->list.data[i]->span);
        uint64_t bits = 0;
        if (r) ir_is_const(e->c, r, &bits);
        st->row_init[i / per] |= bits << (i % per * s->elem);
    }
}

/* A constant of the register's width, without the bits that are not stored. */
static bool init_value(Elab *e, const Info *s, const Node *n, uint64_t *value)
{
    Big k;
    Ref r = eval_const(e, n, &k) ? to_bits(e, (Val){ .kind = V_INT, .i = k }, s->elem, n->span) : 0;
    if (!r) return false;
    ir_is_const(e->c, r, value);
    if (*value & mask64(s->shift) & (s->shift ? ~0ull : 0)) {
        fail(e, n->span, "the value %llu is not a multiple of the alignment", (unsigned long long)*value);
        return false;
    }
    *value >>= s->shift;
    return true;
}

static void init_register(Elab *e, State *st, const Info *s, const Node *init)
{
    bool symbol =
        init->kind == N_CALL && init->a->kind == N_MEMBER && init->list.n == 2 && init->list.data[0]->kind == N_STRING;
    const Node *value = symbol ? init->list.data[1] : init;
    if (init->kind == N_MEMBER && init->a->kind == N_NAME && !strcmp(init->a->name, "image")) {
        st->init = INIT_ENTRY;
        st->init_shift = s->shift;
        return;
    }
    st->row_init = xalloc(sizeof *st->row_init);
    if (!init_value(e, s, value, st->row_init)) return;
    st->nrow_init = 1;
    st->init = symbol ? INIT_SYMBOL : INIT_ROWS;
    if (!symbol) return;
    st->init_shift = s->shift;
    st->row_init[0] <<= s->shift; /* the default is an address like the symbol's value */
    st->symbol = intern(init->list.data[0]->name, strlen(init->list.data[0]->name));
    if (!*st->symbol) fail(e, init->span, "found an empty symbol name");
}

static HomeHint home_of(const Node *hint)
{
    if (!hint) return HOME_AUTO;
    return !strcmp(hint->name, "deltanet")    ? HOME_DELTANET
           : !strcmp(hint->name, "attention") ? HOME_ATTENTION
                                              : HOME_WEIGHTS;
}

/* ---- registers and inputs ---- */
static bool set_alignment(Elab *e, Info *s)
{
    const Node *n = s->decl->b;
    Big k;
    if (s->decl->kind != N_REG || !n) return true;
    if (!eval_const(e, n, &k)) return false;
    if (k < 1 || k > (Big)1 << 62 || !power_of_two((uint64_t)k) || clog2((uint64_t)k) >= s->elem) {
        fail(e, n->span, "found the alignment %s, expected a power of two below 2^%u", big_text(k), s->elem);
        return false;
    }
    s->shift = clog2((uint64_t)k);
    return true;
}

/* The host has one stream of bytes. */
static void check_input(Elab *e, const Info *s)
{
    const Node *n = s->decl;
    if (s->elem > INPUT_BITS) fail(e, n->a->span, "found an input of u%u, expected u%d: a byte, and above it whether there is one", s->elem, INPUT_BITS);
    for (uint32_t i = 0; i < e->c->states.n; i++) {
        if (e->c->states.data[i].kind != ST_HOST) continue;
        fail(e, n->name_span, "found a second input, expected one");
        note_at(e->c->states.data[i].span, "the first");
        return;
    }
}

static void declare_register(Elab *e, Info *s)
{
    Node *n = s->decl;
    if (!set_alignment(e, s)) return;
    if (n->kind == N_INPUT) check_input(e, s);
    if (home_of(n->d) == HOME_ATTENTION) fail(e, n->d->span, "found a register in attention, expected a file or memory there");
    State st = { .name = n->name,
                 .kind = n->kind == N_INPUT ? ST_HOST : ST_REG,
                 .width = s->elem - s->shift,
                 .rows = 1,
                 .span = n->name_span };
    st.lane = s->row = st.width;
    st.home = home_of(n->d);
    if (n->kind == N_REG && n->c) init_register(e, &st, s, n->c);
    s->rows = 1;
    s->state = vec_push(&e->c->states, st);
    s->slot.width = st.width;
    s->slot.now = ir_read(e->c, s->state, 0, n->name_span);
    s->declared = true;
}

/* ---- files and memories ---- */
static bool set_geometry(Elab *e, Info *s, unsigned *lane)
{
    Node *n = s->decl;
    Big count, base;
    Views v = { 0 };
    if (!eval_const_in(e, n->b, 1, MAX_ROWS, "the number of elements", &count)) return false;
    for (uint32_t i = 0; i < e->p->members.n; i++) find_views(e->p->members.data[i], n->name, &v);
    s->row = v.widest > s->elem ? v.widest : s->elem;
    *lane = v.narrowest_write ? v.narrowest_write : s->row;
    if (*lane > s->row) *lane = s->row;
    if (n->e) {
        if (!eval_const_in(e, n->e, 0, (Big)UINT64_MAX, "the base address", &base)) return false;
        s->has_base = true;
        s->base = (uint64_t)base;
        if (s->elem < 8 || !power_of_two(s->elem)) {
            fail(e, n->a->span, "found u%u, expected u8, u16, u32 or u64: the memory has addresses", s->elem);
            return false;
        }
    } else if (v.widest) {
        fail(e, n->span, "the memory '%s' is used by address (.u%u) but has none: add 'at BASE'", n->name, v.widest);
        return false;
    }
    unsigned per = s->row / s->elem;
    if (count % per || (s->has_base && s->base % (s->row / 8))) {
        fail(e, n->b->span, "the memory is read as u%u: its base and size must be multiples of %u elements", s->row,
             per);
        return false;
    }
    s->rows = (uint32_t)(count / per);
    if (s->has_base && (Big)s->base + (Big)s->rows * (s->row / 8) > MAX_CONST) {
        fail(e, n->span, "the memory ends beyond 2^64");
        return false;
    }
    return true;
}

static void hard_row(Elab *e, State *st, const Info *s)
{
    Node *n = s->decl;
    if (!n->list.n) return;
    if (n->list.n > 1) fail(e, n->list.data[1]->span, "one row may be hard-wired");
    Big row, value;
    const Node *h = n->list.data[0];
    if (!eval_const_in(e, h->a, 0, s->rows - 1, "the row", &row) || !eval_const(e, h->b, &value)) return;
    Ref r = to_bits(e, (Val){ .kind = V_INT, .i = value }, s->elem, h->b->span);
    if (!r) return;
    st->has_hard = true;
    st->hard_row = (uint32_t)row;
    ir_is_const(e->c, r, &st->hard_value);
}

static void declare_rows(Elab *e, Info *s)
{
    Node *n = s->decl;
    unsigned lane;
    if (!set_geometry(e, s, &lane)) return;
    State st = { .name = n->name,
                 .kind = n->kind == N_FILE ? ST_FILE : ST_MEM,
                 .width = s->row,
                 .rows = s->rows,
                 .lane = lane,
                 .base = s->base,
                 .span = n->name_span,
                 .home = home_of(n->d),
                 .forward = n->forward };
    hard_row(e, &st, s);
    if (n->c && n->c->kind == N_NAME && !n->c->decl) {
        st.init = INIT_IMAGE;
        if (!s->has_base)
            fail(e, n->c->span, "the memory '%s' has no base address to fill it from the image: add 'at BASE'",
                 n->name);
    } else if (n->c) {
        init_rows(e, &st, s, n->c);
    }
    s->state = vec_push(&e->c->states, st);
    s->slot.width = s->row;
    s->declared = true;
}

static void declare_state(Elab *e, Node *n)
{
    unsigned width = type_width(e, n->a);
    if (!width) return;
    Info *s = xalloc(sizeof *s);
    s->decl = n;
    s->elem = s->row = width;
    if (n->kind == N_REG || n->kind == N_INPUT) declare_register(e, s);
    else declare_rows(e, s);
    if (!s->declared) return;
    n->at = vec_push(&e->infos, s) + 1;
}

void declare_states(Elab *e)
{
    for (uint32_t i = 0; i < e->p->members.n; i++) {
        Node *n = e->p->members.data[i];
        if (n->kind == N_REG || n->kind == N_INPUT || n->kind == N_FILE || n->kind == N_MEM) declare_state(e, n);
    }
}

/* ---- registers and carried values ---- */
/* The declared value of what a register stores: the low bits of an aligned one are 0. */
static Ref stored_to_value(Elab *e, const Info *s, Ref r)
{
    return s->shift ? ir_cat2(e->c, r, ir_const(e->c, s->shift, 0)) : r;
}

Ref register_read(Elab *e, Info *s) { return stored_to_value(e, s, s->slot.now); }
Ref register_next(Elab *e, Info *s) { return stored_to_value(e, s, slot_next(e, &s->slot)); }

/* The condition under which the effect's value is the final one. */
Ref effect_cond(Elab *e, const Effect *x)
{
    Ref abs = x->cond ? x->cond : x->path->abs;
    if (!x->nminus) return abs;
    Ref r[MAX_MINUS];
    for (uint32_t i = 0; i < x->nminus; i++) r[i] = x->minus[i]->abs;
    return ir_and(e->c, abs, ir_not(e->c, any_of(e, r, x->nminus)));
}

/* A later assignment on the current path may override this one. */
static void override(Elab *e, Effect *x)
{
    if (x->nminus == MAX_MINUS) {
        x->cond = effect_cond(e, x);
        x->nminus = 0;
    }
    if (!x->nminus) x->minus = xalloc(MAX_MINUS * sizeof *x->minus);
    x->minus[x->nminus++] = e->path;
}

/* What the fault handler does, now, takes the place of an effect of the step. */
bool gives_way(Elab *e, Effect *old)
{
    if (!e->handling || !path_within(e->path, e->handling) || path_within(old->path, e->handling)) return false;
    override(e, old);
    return true;
}

/* The last assignment in program order wins: earlier ones lose the condition under which this one is made. */
void slot_assign(Elab *e, Slot *s, Ref value, Span at)
{
    uint32_t n = 0;
    if (!add_work(e, s->effects.n / 4, at)) return;
    for (uint32_t i = 0; i < s->effects.n; i++) {
        Effect *old = &s->effects.data[i];
        if (path_within(old->path, e->path)) continue;
        if (!path_exclusive(e, old->path, e->path)) override(e, old);
        s->effects.data[n++] = *old;
    }
    s->effects.n = n;
    Effect new = { .path = e->path, .data = value, .inner = e->inner, .span = at };
    if (s->effects.n >= MAX_ARMS) {
        fail(e, at, "more than %d assignments to one register", MAX_ARMS);
        e->stop = true;
        return;
    }
    vec_push(&s->effects, new);
}

/* The value after the assignments made so far, as it is seen on the current path. */
Ref slot_next(Elab *e, const Slot *s)
{
    uint32_t n = 0, count = s->effects.n;
    Ref *cond = xalloc((count + 1) * sizeof *cond), *val = xalloc((count + 1) * sizeof *val);
    bool covered = false;
    if (count && !add_work(e, count, s->effects.data[count - 1].span)) return s->now;
    for (uint32_t i = 0; i < count; i++) {
        const Effect *x = &s->effects.data[i];
        if (path_exclusive(e, x->path, e->path)) continue;
        if (path_within(e->path, x->path)) covered = true;
        cond[n] = effect_cond(e, x);
        val[n++] = x->data;
    }
    if (!n) return s->now;
    if (!covered) {
        cond[n] = ir_not(e->c, any_of(e, cond, n));
        val[n++] = s->now;
    }
    return select_value(e, cond, val, n, s->width, true);
}
