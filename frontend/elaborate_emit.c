/* elaborate_emit.c: emits, and the end of elaboration: all effects become one write port per state element and one emit
 * per device or fault.
 *
 * An enable is the OR of the paths of its effects. Conditions that all paths share at their end (a bad address, say)
 * are taken out of the OR, so that what is known late joins last: (a & x) | (b & x) becomes (a | b) & x. */
#include "elaborate.h"
#include <ctype.h>
#include <string.h>

/* ---- collecting ---- */
static Sink *sink_of(Elab *e, EmitRole role, const Node *device, const char *message, uint64_t code, Span at)
{
    for (uint32_t i = 0; i < e->sinks.n; i++) {
        Sink *s = e->sinks.data[i];
        if (s->role == role && s->device == device && s->code == code &&
            (message ? s->message && !strcmp(s->message, message) : !s->message))
            return s;
    }
    Sink *s = xalloc(sizeof *s);
    *s = (Sink){ .role = role, .device = device, .message = message, .code = code, .span = at };
    vec_push(&e->sinks, s);
    return s;
}

static void add_effect(Elab *e, Sink *s, Path *path, Ref payload, Span at)
{
    Effect new = { .path = path, .data = payload, .inner = e->inner, .span = at };
    if (s->effects.n >= MAX_ARMS) {
        fail(e, at, "more than %d places with this effect", MAX_ARMS);
        e->stop = true;
        return;
    }
    vec_push(&s->effects, new);
}

bool effect_allowed(Elab *e, Span at)
{
    if (e->inner && !e->no_effects)
        fail(e, at, "the body of iterate assigns its carried values only; other effects go into 'then'");
    return !e->inner && !e->no_effects;
}

void emit_device(Elab *e, const Node *device, Ref payload, Span at)
{
    if (!effect_allowed(e, at)) return;
    Sink *s = sink_of(e, device->kind == N_OUTPUT ? EMIT_OUTPUT : EMIT_EXIT, device, NULL, 0, device->name_span);
    if (!add_work(e, s->effects.n / 4, at)) return;
    for (uint32_t i = 0; i < s->effects.n; i++) {
        if (path_exclusive(e, s->effects.data[i].path, e->path) || gives_way(e, &s->effects.data[i])) continue;
        unsigned before = error_count();
        fail(e, at, "'%s' may be written twice in one step", device->name);
        if (error_count() > before) note_at(s->effects.data[i].span, "the other place");
        return;
    }
    add_effect(e, s, e->path, payload, at);
}

void emit_take(Elab *e, const Node *input, Span at)
{
    if (!effect_allowed(e, at)) return;
    add_effect(e, sink_of(e, EMIT_TAKE, input, NULL, 0, at), e->path, 0, at);
}

void emit_fault(Elab *e, uint64_t code, const char *message, Ref value, Path *path, Span at)
{
    uint64_t k;
    if (e->no_effects || (ir_is_const(e->c, path->abs, &k) && !k)) return;
    Sink *s = sink_of(e, EMIT_FAULT, NULL, message, code, at);
    add_effect(e, s, path, value, at);
    if (!s->effects.n) return;
    Effect *f = &s->effects.data[s->effects.n - 1];
    f->fault = f->inner = true; /* it does not wait for the end of a loop */
}

/* ---- conditions ---- */
typedef struct {
    Ref *lit;
    uint32_t n;
} Product;

static Ref product(Elab *e, const Product *p)
{
    Ref r = ir_const(e->c, 1, 1);
    for (uint32_t i = 0; i < p->n; i++) r = ir_and(e->c, r, p->lit[i]);
    return r;
}

/* OR of products, with common last factors taken out. Takes p apart. */
static Ref sum(Elab *e, Product *p, uint32_t n)
{
    Ref *term = xalloc((n + 1) * sizeof *term);
    Product *group = xalloc((n + 1) * sizeof *group);
    uint32_t terms = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!p[i].n) return ir_const(e->c, 1, 1);
    if (n == 1) return product(e, p);
    for (uint32_t i = 0; i < n; i++) {
        if (!p[i].n) continue;
        Ref last = p[i].lit[p[i].n - 1];
        uint32_t m = 0, first = i;
        for (uint32_t j = i; j < n; j++) {
            if (!p[j].n || p[j].lit[p[j].n - 1] != last) continue;
            group[m++] = (Product){ p[j].lit, p[j].n - 1 };
            if (j != first) p[j].n = 0;
        }
        if (m == 1) term[terms++] = product(e, &p[i]);
        else term[terms++] = ir_and(e->c, sum(e, group, m), last);
        p[i].n = 0;
    }
    return any_of(e, term, terms);
}

/* Takes the conditions that all products begin with out of their sum. */
static Ref sum_of_products(Elab *e, Product *p, uint32_t n)
{
    if (!n) return ir_const(e->c, 1, 0);
    uint32_t common = p[0].n;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t k = 0;
        while (k < common && k < p[i].n && p[i].lit[k] == p[0].lit[k]) k++;
        common = k;
    }
    Product prefix = { p[0].lit, common };
    for (uint32_t i = 0; i < n; i++) p[i] = (Product){ p[i].lit + common, p[i].n - common };
    return ir_and(e->c, product(e, &prefix), sum(e, p, n));
}

static bool of_handler(const Elab *e, const Effect *x) { return e->handling && path_within(x->path, e->handling); }

/* 1 unless a loop that may run in the same step is not at its end. */
static Ref not_waiting(Elab *e, const Effect *x)
{
    Ref *wait = xalloc((e->loops.n + 1) * sizeof *wait);
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->loops.n && !x->inner && !of_handler(e, x); i++)
        if (!path_exclusive(e, x->path, e->loops.data[i].wait)) wait[n++] = e->loops.data[i].wait->abs;
    return ir_not(e->c, any_of(e, wait, n));
}

/* The conditions of one effect: its path from the root, and that it need not wait. */
static Product effect_product(Elab *e, const Effect *x)
{
    Product p = { xalloc((x->path->depth + 2) * sizeof(Ref)), x->path->depth };
    uint32_t i = p.n;
    for (const Path *q = x->path; q->up; q = q->up) p.lit[--i] = q->lit;
    Ref free[2] = { not_waiting(e, x), no_fault(e, x) };
    uint64_t k;
    for (int j = 0; j < 2; j++)
        if (!ir_is_const(e->c, free[j], &k)) p.lit[p.n++] = free[j];
    return p;
}

/* Another effect has the same or weaker conditions. */
static bool covered(const Elab *e, const Effect *all, uint32_t n, uint32_t i)
{
    for (uint32_t j = 0; j < n; j++)
        if (j != i && all[i].inner == all[j].inner && of_handler(e, &all[i]) == of_handler(e, &all[j]) && path_within(all[i].path, all[j].path) &&
            (all[i].path != all[j].path || j < i))
            return true;
    return false;
}

Ref effects_enable(Elab *e, const Effect *x, uint32_t n)
{
    Product *p = xalloc((n + 1) * sizeof *p);
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!covered(e, x, n, i)) p[m++] = effect_product(e, &x[i]);
    return sum_of_products(e, p, m);
}

/* ---- write ports ---- */
typedef enum { BY_INDEX, BY_DATA, BY_LANES } Field;

/* One field of the write port, bits [lo, lo + width): selected among the effects. */
static Ref merged(Elab *e, const Slot *s, Field field, unsigned lo, unsigned width)
{
    uint32_t n = s->effects.n;
    Ref *cond = xalloc((n + 1) * sizeof *cond), *val = xalloc((n + 1) * sizeof *val);
    for (uint32_t i = 0; i < n; i++) {
        const Effect *x = &s->effects.data[i];
        Ref r = field == BY_INDEX ? x->index : field == BY_DATA ? x->data : x->lanes;
        cond[i] = effect_cond(e, x);
        val[i] = ir_slice(e->c, r, lo, width);
    }
    return select_value(e, cond, val, n, width, true);
}

/* Lane by lane: in most of them all writes of a memory have the same data. */
static Ref merged_data(Elab *e, const Slot *s, unsigned width, unsigned lane)
{
    unsigned n = width / lane;
    if (n == 1) return merged(e, s, BY_DATA, 0, width);
    Ref part[64];
    for (unsigned i = 0; i < n; i++) part[n - 1 - i] = merged(e, s, BY_DATA, i * lane, lane);
    return ir_op(e->c, OP_CAT, width, 0, n, part, s->effects.data[0].span);
}

static void write_port(Elab *e, const Slot *s, uint32_t state)
{
    const State *st = &e->c->states.data[state];
    if (!s->effects.n) return;
    const Effect *first = &s->effects.data[0];
    unsigned width = st->width, lane = st->lane;
    Write w = { .state = state, .span = first->span };
    w.en = effects_enable(e, s->effects.data, s->effects.n);
    if (first->index) w.index = merged(e, s, BY_INDEX, 0, op_at(e->c, first->index)->width);
    w.data = merged_data(e, s, width, lane);
    uint64_t k, all = mask64(width / lane);
    if (first->lanes) w.lanes = merged(e, s, BY_LANES, 0, width / lane);
    if (w.lanes && ir_is_const(e->c, w.lanes, &k) && k == all) w.lanes = 0;
    if (!ir_is_const(e->c, w.en, &k) || k) vec_push(&e->c->writes, w);
}

/* ---- emits ---- */
static bool fault_taken(const Elab *e, const char *name)
{
    for (uint32_t i = 0; i < e->c->emits.n; i++)
        if (e->c->emits.data[i].role == EMIT_FAULT && !strcmp(e->c->emits.data[i].name, name)) return true;
    return false;
}

/* A fault is known by its message, made a word; by a number too when another has that name. */
static const char *fault_name(const Elab *e, const Sink *s)
{
    char *word = xstrdup(s->message), *name = word;
    for (char *p = word; *p; p++) *p = isalnum((unsigned char)*p) ? *p : '_';
    if (!*word) name = word = xfmt("fault");
    for (uint64_t k = s->code; fault_taken(e, name); k++) name = xfmt("%s_%llu", word, (unsigned long long)k);
    return intern(name, strlen(name));
}

/* The handler keeps the fault. */
static Ref kept(Elab *e)
{
    Ref *r = xalloc((e->kept.n + 1) * sizeof *r);
    for (uint32_t i = 0; i < e->kept.n; i++) r[i] = path_since(e, e->kept.data[i], e->handling);
    return any_of(e, r, e->kept.n);
}

static void emit_sink(Elab *e, const Sink *s)
{
    Emit m = { .role = s->role, .message = s->message, .span = s->effects.n ? s->effects.data[0].span : s->span };
    uint64_t k;
    if (!s->effects.n) return;
    m.en = effects_enable(e, s->effects.data, s->effects.n);
    if (s->role == EMIT_FAULT && e->handling) m.en = ir_and(e->c, kept(e), m.en);
    if (ir_is_const(e->c, m.en, &k) && !k) return;
    Slot payload = { .width = s->role != EMIT_FAULT && s->effects.data[0].data ? op_at(e->c, s->effects.data[0].data)->width : 0 };
    payload.effects.data = s->effects.data;
    payload.effects.n = s->effects.n;
    m.name = s->device ? s->device->name : fault_name(e, s);
    if (payload.width) m.payload = merged(e, &payload, BY_DATA, 0, payload.width);
    if (s->role == EMIT_FAULT) m.payload = ir_const(e->c, clog2(s->code + 1) ? clog2(s->code + 1) : 1, s->code);
    if (s->role == EMIT_TAKE) m.state = info_of(e, s->device)->state;
    vec_push(&e->c->emits, m);
}

void finish_effects(Elab *e)
{
    run_handler(e);
    for (uint32_t i = 0; i < e->infos.n; i++) write_port(e, &e->infos.data[i]->slot, e->infos.data[i]->state);
    for (uint32_t i = 0; i < e->hidden.n; i++) write_port(e, e->hidden.data[i], e->hidden_state.data[i]);
    for (uint32_t i = 0; i < e->sinks.n; i++) emit_sink(e, e->sinks.data[i]);
    Ref *wait = xalloc((e->loops.n + 1) * sizeof *wait);
    for (uint32_t i = 0; i < e->loops.n; i++) wait[i] = e->loops.data[i].wait->abs;
    e->c->retire = ir_not(e->c, any_of(e, wait, e->loops.n));
    if (e->handling) e->c->retire = ir_or(e->c, e->c->retire, e->handling->abs);
}
