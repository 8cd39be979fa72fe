/* protocol.c: the trace protocol, derived: what a step says, in which order, and as which kinds of token.
 *
 * A step's fields, in order: faults (they end the run at once), outputs and takes, exits (they end it too), fed-back writes, loop counters, small
 * registers packed together, and last the tail register. A field that is not needed is skipped; so are the upper chunks of a value when a
 * short form says them. The last token of a step carries the commit. The next pass knows from the kind of its input token where it
 * is, recomputes the same step (the state has not changed) and says the next part.
 *
 * Choice by priority: of all kinds that are on the output head says the one of the highest rank. So no kind excludes another by its own condition: a
 * field is on when it is needed and what comes before it may have been said, a part of it with `more` to follow also when it is the last. Faults rank
 * first, then the fields in their order, in a field its short forms (a lower half of 0 after the others) and the inner pass before the rest, and what ends the step before what does not,
 * the tail staying as it is before its advancing;
 * `none`, always on, is last. Each kind's payload is read from the field itself. The conditions stay shallow, and no proof has to
 * show that two of them exclude each other.
 *
 * Before all of this come the carries of registers that count in every step (modes.c). */
#include "protocol.h"
#include <string.h>

const char *const role_name[] = {"trace", "output", "exit", "fault", "take", "input", "start", "load"};

enum { SMALL_REG = 8 };

/* ---- fields ---- */

static int label_of(const Modes *m, Ref r)
{
    int t = -1;
    for (unsigned i = 0; r && i < op_at(m->c, r)->width; i++) {
        int x = map_lit_label(m->net, m->bits.bits[r][i]);
        t = x > t ? x : t;
    }
    return t;
}

/* The lowest home of the element's copies. */
static int lowest_home(const Modes *m, uint32_t s)
{
    int h = -1;
    for (uint32_t p = 0; p < m->net->ports.n; p++) {
        const Port *q = &m->net->ports.data[p];
        if (q->state == s && (h < 0 || q->home < h)) h = q->home;
    }
    return h < 0 ? 1 : h;
}

static Ref differs(Circuit *c, Ref a, Ref b)
{
    Ref x = ir_xor(c, a, b), any = ir_const(c, 1, 0);
    for (unsigned i = 0; i < op_at(c, a)->width; i++) any = ir_or(c, any, ir_slice(c, x, i, 1));
    return any;
}

static Ref next_value(Circuit *c, const Write *w)
{
    Ref old = ir_read(c, w->state, 0, w->span);
    return ir_mux(c, w->en, ir_lanes(c, w->lanes, c->states.data[w->state].lane, w->data, old), old);
}

static Ref matches(Circuit *c, Ref bits, unsigned lo, unsigned width, uint64_t value)
{
    Ref r = ir_const(c, 1, 1);
    for (unsigned i = 0; i < width; i++) {
        Ref b = ir_slice(c, bits, lo + i, 1);
        r = ir_and(c, r, value >> i & 1 ? b : ir_not(c, b));
    }
    return r;
}

static Field *add_field(Protocol *p, Field f)
{
    vec_push(&p->fields, f);
    return &p->fields.data[p->fields.n - 1];
}

static void emit_fields(Protocol *p, EmitRole role)
{
    Circuit *c = p->m->c;
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        if (e->role != role) continue;
        bool pay = e->payload && (role == EMIT_OUTPUT || role == EMIT_EXIT);
        add_field(p, (Field){.name = e->name, .emit = true, .index = i, .need = e->en, .part = {pay ? e->payload : 0},
                             .width = pay ? op_at(c, e->payload)->width : 0});
    }
}

/* Registers of a few bits share one field, said when one of them changes. True: it has some. */
static bool packed_field(Protocol *p, bool hidden)
{
    Circuit *c = p->m->c;
    unsigned number = 1;
    for (uint32_t i = 0; i < p->fields.n; i++) number += p->fields.data[i].flags && !p->fields.data[i].loop;
    Field f = {.name = hidden ? "loop" : number > 1 ? xfmt("flags%u", number) : "flags", .flags = true, .loop = hidden, .need = ir_const(c, 1, 0)};
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write w = c->writes.data[i];
        const State *s = &c->states.data[w.state];
        if (s->kind != ST_REG || p->m->mode[w.state] != MODE_FED || s->hidden != hidden) continue;
        if (hidden) f.need = ir_or(c, f.need, w.en); /* of all loop registers: this field alone tells an inner pass from the last */
        if (s->width > SMALL_REG || w.lanes || p->packed[i]) continue;
        if (f.width + s->width > (hidden ? p->payload : p->pack)) continue; /* does not fit: the next one, or a field of its own */
        if (!hidden) f.need = ir_or(c, f.need, ir_and(c, w.en, differs(c, w.data, ir_read(c, w.state, 0, w.span))));
        Ref v = next_value(c, &w);
        f.part[0] = f.part[0] ? ir_cat2(c, v, f.part[0]) : v;
        f.width += s->width;
        vec_push(&f.regs, i);
        p->packed[i] = true;
    }
    if (f.regs.n) add_field(p, f);
    return f.regs.n;
}

static void write_field(Protocol *p, uint32_t i)
{
    const Modes *m = p->m;
    Circuit *c = m->c;
    const Write w = c->writes.data[i];
    const State *s = &c->states.data[w.state];
    int before = 2 * lowest_home(m, w.state);
    Field f = {.name = s->name, .index = i, .need = w.en};
    if (s->kind == ST_REG && s->width <= SMALL_REG && !w.lanes) f.need = ir_and(c, w.en, differs(c, w.data, ir_read(c, w.state, 0, w.span)));
    s = &c->states.data[w.state];
    if (s->has_hard && w.index) f.need = ir_and(c, f.need, ir_not(c, matches(c, w.index, 0, op_at(c, w.index)->width, s->hard_row))); /* is dropped */
    s = &c->states.data[w.state];
    bool loads = state_is_filled(s);
    bool addr_tap = !w.index || (!loads && label_of(m, w.index) < before && s->rows <= p->group_rows && (!w.lanes || label_of(m, w.lanes) < 0));
    bool data_tap = !loads && label_of(m, w.data) < before;
    f.data_tap = data_tap;
    unsigned n = 0;
    if (!addr_tap) f.part[n++] = w.index, f.with_index = op_at(c, w.index)->width;
    if (w.lanes) f.part[n++] = w.lanes, f.with_lanes = op_at(c, w.lanes)->width;
    if (!data_tap) f.part[n++] = w.data;
    for (unsigned i = 0; i < n; i++) f.width += op_at(c, f.part[i])->width;
    add_field(p, f);
}

static void tail_field(Protocol *p)
{
    Modes *m = p->m;
    Circuit *c = m->c;
    const Write *w = write_of(c, (uint32_t)m->tail);
    Field f = {.name = c->states.data[m->tail].name, .index = (uint32_t)(w - c->writes.data), .tail = true, .part = {next_value(c, w)}};
    w = write_of(c, (uint32_t)m->tail);
    f.width = op_at(c, f.part[0])->width;
    f.need = w->en; /* also in an inner pass, where it is not said: the loop field is needed there, and its kind that ends the pass outranks the tail */
    if (m->tail_adv) { /* silent only while it advances inside its count */
        Ref old = ir_read(c, (uint32_t)m->tail, 0, w->span), full = ir_const(c, 1, 1);
        for (unsigned i = 0; i < m->cnt_bits; i++) full = ir_and(c, full, ir_slice(c, old, m->cnt_lo + i, 1));
        f.need = ir_not(c, ir_and(c, m->tail_adv, ir_not(c, full)));
    }
    add_field(p, f);
}

static unsigned chunks_of(unsigned width, unsigned payload) { return width ? (width + payload - 1) / payload : 1; }

static void cut_chunks(Field *f)
{
    f->nchunks = chunks_of(f->width, f->payload);
    f->chunk_lo = xalloc(f->nchunks * sizeof(unsigned));
    f->chunk_width = xalloc(f->nchunks * sizeof(unsigned));
    for (unsigned j = 0; j < f->nchunks; j++) {
        f->chunk_lo[j] = j * f->payload;
        unsigned left = f->width - f->chunk_lo[j];
        f->chunk_width[j] = left > f->payload ? f->payload : left;
    }
}

/* A register file is written in every other step: where there is one, registers take the long form rather than more of the vocabulary. */
static bool is_rare(const Protocol *p, const Field *f)
{
    const Circuit *c = p->m->c;
    bool file = false;
    for (uint32_t i = 0; i < c->writes.n; i++)
        file |= c->states.data[c->writes.data[i].state].kind == ST_FILE && p->m->mode[c->writes.data[i].state] == MODE_FED;
    return file && c->states.data[c->writes.data[f->index].state].kind == ST_REG;
}

static bool has_forms(const Protocol *p, const Field *f)
{
    return !f->emit && !f->flags && !f->tail && !f->with_index && !f->with_lanes && !is_rare(p, f);
}

/* Upper bits that are common: none, all, and the upper part of the machine's first image address. */
static void choose_forms(Protocol *p, Field *f)
{
    const Circuit *c = p->m->c;
    f->nforms = 0;
    if (!has_forms(p, f) || f->nchunks < 2) return;
    unsigned up = f->width - f->chunk_width[0];
    f->form[f->nforms++] = 0;
    f->form[f->nforms++] = mask64(up);
    for (uint32_t s = 0; s < c->states.n; s++) {
        uint64_t v = c->states.data[s].base >> f->chunk_width[0] & mask64(up);
        if (c->states.data[s].kind != ST_MEM || v == 0 || v == mask64(up)) continue;
        f->form[f->nforms++] = v;
        break;
    }
}

static void collect_fields(Protocol *p)
{
    const Circuit *c = p->m->c;
    p->fields.n = 0;
    memset(p->packed, 0, c->writes.n);
    emit_fields(p, EMIT_FAULT);
    p->first_normal = p->fields.n;
    emit_fields(p, EMIT_OUTPUT);
    emit_fields(p, EMIT_TAKE);
    emit_fields(p, EMIT_EXIT);
    uint32_t packed_at = p->first_field = p->fields.n;
    packed_field(p, true);
    while (packed_field(p, false)) {}
    uint32_t npacked = p->fields.n - packed_at;
    VEC(Field) packed = {0};
    for (uint32_t i = 0; i < npacked; i++) vec_push(&packed, p->fields.data[packed_at + i]);
    p->fields.n = packed_at;
    for (uint32_t i = 0; i < c->writes.n; i++)
        if (p->m->mode[c->writes.data[i].state] == MODE_FED && !p->packed[i]) write_field(p, i);
    for (uint32_t i = 0; i < npacked; i++) add_field(p, packed.data[i]);
    if (p->m->tail >= 0) tail_field(p);
}

/* ---- kinds ---- */

static uint32_t add_kind(Protocol *p, Kind k)
{
    k.begin = k.last || k.role == ROLE_START || k.role == ROLE_INPUT;
    vec_push(&p->kinds, k);
    return p->kinds.n - 1;
}

static const Role emit_role[] = {[EMIT_OUTPUT] = ROLE_OUTPUT, [EMIT_EXIT] = ROLE_EXIT, [EMIT_FAULT] = ROLE_FAULT, [EMIT_TAKE] = ROLE_TAKE};

static Kind emit_kind(const Protocol *p, int fi)
{
    const Field *f = &p->fields.data[fi];
    const Emit *e = &p->m->c->emits.data[f->index];
    Kind k = {.name = f->name, .message = e->message, .role = emit_role[e->role], .width = f->width, .field = fi, .form = -1};
    k.last = k.retire = true;
    if (e->role == EMIT_FAULT) ir_is_const(p->m->c, e->payload, &k.code);
    return k;
}

/* A short form of its own: the lower half is 0. At the end of a step only, so that it takes no more rows than it earns. */
static bool has_alone(const Field *f) { return f->nforms && f->nchunks == 2 && !f->brief; }

bool at_end_only(const Field *f, unsigned form) { return f->brief && form + 1 < f->nforms; }

/* Few rows for a step that ends with this field and does not move the tail, which else is said too. */
bool may_stay(const Protocol *p, const Field *f)
{
    if (!p->m->tail_stays || f->tail || f->loop) return false;
    EmitRole role = f->emit ? p->m->c->emits.data[f->index].role : EMIT_OUTPUT;
    return (f->flags || f->width <= SMALL_REG) && (role == EMIT_OUTPUT || role == EMIT_TAKE);
}

static void add_staying(Protocol *p, Kind k)
{
    k.name = xfmt("%s.stay", p->fields.data[k.field].name);
    k.last = k.retire = k.stay = true;
    add_kind(p, k);
}

static bool has_later(const Protocol *p, int fi) { return (uint32_t)fi + 1 < p->fields.n; }

static void field_kinds(Protocol *p, int fi)
{
    const Field *f = &p->fields.data[fi];
    for (unsigned j = 0; j < f->nchunks; j++) {
        bool final = j + 1 == f->nchunks;
        const char *base = f->nchunks > 1 ? xfmt("%s.%u", f->name, j) : f->name;
        Kind k = {.role = ROLE_TRACE, .width = f->chunk_width[j], .field = fi, .chunk = (int)j, .form = -1, .retire = true};
        for (unsigned g = 0; j == 0 && g < f->nforms; g++)
            for (int more = 0; more <= (has_later(p, fi) && !at_end_only(f, g)); more++) {
                k.name = xfmt("%s.%s%s", base, g == 0 ? "zero" : g == 1 ? "ones" : "base", more ? ".more" : "");
                k.form = (int)g;
                k.last = !more;
                add_kind(p, k);
            }
        k.form = -1;
        if (f->tail) {
            k.name = base;
            k.last = j == 0;
            add_kind(p, k);
            continue;
        }
        if (final && has_alone(f)) {
            k.name = xfmt("%s.alone", base);
            k.last = k.alone = true;
            add_kind(p, k);
            k.alone = false;
        }
        if (final) {
            k.name = base;
            k.last = true;
            add_kind(p, k);
        }
        if (final && may_stay(p, f)) add_staying(p, k);
        if (!final || has_later(p, fi)) {
            k.name = xfmt("%s.more", base);
            k.last = false;
            add_kind(p, k);
        }
        if (final && f->loop) {
            k.name = xfmt("%s.inner", base);
            k.last = k.hold = true;
            k.retire = false;
            add_kind(p, k);
        }
    }
}

static bool loads_alike(const State *a, const State *b)
{
    return a->init == INIT_IMAGE && b->init == INIT_IMAGE && a->base == b->base && a->rows == b->rows && a->width == b->width;
}

/* Kinds that fill initial contents in from a prompt. The tail register needs none: its own tokens set it. */
static void load_kinds(Protocol *p)
{
    const Circuit *c = p->m->c;
    for (uint32_t s = 0; s < c->states.n; s++) {
        const State *st = &c->states.data[s];
        bool counts = p->m->mode[s] == MODE_COUNT; /* is added to before it is ever replaced: its row must stand */
        if ((!state_is_filled(st) && !counts) || (int)s == p->m->tail || st->kind == ST_HOST) continue;
        if (st->rows > 1 && clog2(st->rows) > p->load_index) p->load_index = clog2(st->rows);
        if (st->width > p->load_data) p->load_data = st->width;
        uint32_t g = 0;
        while (g < p->loads.n && !loads_alike(&c->states.data[p->loads.data[g].states.data[0]], st)) g++;
        if (g == p->loads.n) vec_push(&p->loads, ((LoadGroup){0}));
        vec_push(&p->loads.data[g].states, s);
    }
    if (!p->loads.n) return;
    unsigned bits = p->load_index + p->load_data;
    p->load_chunks = chunks_of(bits, p->load_payload);
    p->load_kind = p->kinds.n;
    for (unsigned j = 0; j + 1 < p->load_chunks; j++)
        add_kind(p, (Kind){.name = xfmt("load.%u", j), .role = ROLE_LOAD, .width = p->load_payload, .field = -1, .chunk = (int)j, .form = -1});
    for (uint32_t g = 0; g < p->loads.n; g++) {
        p->loads.data[g].kind = p->kinds.n;
        add_kind(p, (Kind){.name = xfmt("load %s", c->states.data[p->loads.data[g].states.data[0]].name), .role = ROLE_LOAD, .field = -1,
                           .width = bits - (p->load_chunks - 1) * p->load_payload, .chunk = (int)p->load_chunks - 1, .form = -1});
    }
}

/* Between steps, before all else: it changes no value, only how one is kept. It ends no step, and is no inner pass that counts. */
static void carry_kinds(Protocol *p)
{
    Circuit *c = p->m->c;
    for (uint32_t s = 0; s < c->states.n; s++) {
        if (p->m->mode[s] != MODE_COUNT) continue;
        unsigned lo = p->m->count_lo[s], up = lo + p->m->count_bits[s], w = c->states.data[s].width;
        add_kind(p, (Kind){.name = xfmt("%s.carry", c->states.data[s].name), .role = ROLE_TRACE, .width = lo + w - up, .last = true, .hold = true,
                           .field = -1, .chunk = -1, .form = -1, .carry = s + 1});
    }
}

static bool is_said(const Kind *k) { return k->role != ROLE_START && k->role != ROLE_INPUT && k->role != ROLE_LOAD; }

/* Whether kind a is said where both are on. */
static bool outranks(const Protocol *p, uint32_t a, uint32_t b)
{
    const Kind *x = &p->kinds.data[a], *y = &p->kinds.data[b];
    if (x->carry || y->carry) return x->carry && (!y->carry || a < b);
    if (x->field != y->field) return x->field >= 0 && (y->field < 0 || x->field < y->field);
    if (x->hold != y->hold) return x->hold;
    if (x->stay != y->stay) return x->stay;
    if ((x->form < 0) != (y->form < 0)) return x->form >= 0;
    if (x->alone != y->alone) return x->alone;
    return a < b;
}

static void rank_kinds(Protocol *p)
{
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        Kind *x = &p->kinds.data[k];
        x->score = is_said(x);
        for (uint32_t j = 0; x->score && j < p->kinds.n; j++) x->score += j != k && is_said(&p->kinds.data[j]) && outranks(p, k, j);
    }
}

static void make_kinds(Protocol *p)
{
    const Circuit *c = p->m->c;
    add_kind(p, (Kind){.name = "start", .role = ROLE_START, .field = -1, .chunk = -1, .form = -1});
    for (uint32_t s = 0; s < c->states.n; s++)
        if (c->states.data[s].kind == ST_HOST)
            add_kind(p, (Kind){.name = c->states.data[s].name, .role = ROLE_INPUT, .width = c->states.data[s].width, .field = -1 - (int)s - 1,
                               .chunk = -1, .form = -1});
    add_kind(p, (Kind){.name = "none", .role = ROLE_TRACE, .last = true, .retire = true, .field = -1, .chunk = -1, .form = -1});
    for (uint32_t i = 0; i < p->fields.n; i++) {
        if (!p->fields.data[i].emit) {
            field_kinds(p, (int)i);
            continue;
        }
        Kind k = emit_kind(p, (int)i);
        add_kind(p, k);
        if (may_stay(p, &p->fields.data[i])) add_staying(p, k);
        if ((k.role != ROLE_OUTPUT && k.role != ROLE_TAKE) || !has_later(p, (int)i)) continue;
        k.last = k.retire = false;
        k.name = xfmt("%s.more", k.name);
        add_kind(p, k);
    }
    carry_kinds(p);
    load_kinds(p);
    rank_kinds(p);
    uint64_t base = 0;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        p->kinds.data[k].base = (uint32_t)base;
        base += 1ull << p->kinds.data[k].width;
        if (!p->kinds.data[k].last) p->kinds.data[k].retire = false;
        if (p->kinds.data[k].role == ROLE_FAULT) p->kinds.data[k].retire = false;
    }
    p->vocab = base;
}

/* ---- what the pass says ---- */

static Ref token(Protocol *p, const char *name, bool (*is)(const Protocol *, const Kind *, int, int), int a, int b)
{
    uint32_t ch = protocol_channel(p, name, is, a, b);
    return ir_op(p->m->c, OP_TOKEN, 1, ch, 0, NULL, (Span){0});
}

static bool is_begin(const Protocol *p, const Kind *k, int a, int b) { (void)p, (void)a, (void)b; return k->begin; }
static bool is_done(const Protocol *p, const Kind *k, int f, int b)
{
    (void)b;
    if (p->fields.data[f].tail) return false;
    return k->field == f && !k->last && (k->form >= 0 || (unsigned)k->chunk + 1 == p->fields.data[f].nchunks);
}
static bool is_at(const Protocol *p, const Kind *k, int f, int j)
{
    if (p->fields.data[f].tail) return k->field == f && k->chunk == j;
    return k->field == f && k->chunk == j && !k->last && k->form < 0 && (unsigned)j + 1 < p->fields.data[f].nchunks;
}

static bool is_exit(const Protocol *p, uint32_t f)
{
    return p->fields.data[f].emit && p->m->c->emits.data[p->fields.data[f].index].role == EMIT_EXIT;
}

/* Kinds after which field f may start: the step begins, or a field before it has been said. */
static bool is_before(const Protocol *p, const Kind *k, int f, int b)
{
    return k->begin || (k->field >= (int)p->first_normal && k->field < f && is_done(p, k, k->field, b));
}

/* The pass may start field f. What stands between, if it is needed, outranks it. */
static Ref eligible(Protocol *p, uint32_t f)
{
    uint32_t g = f; /* fields that nothing but `begin` comes before share a channel, and so do those before a field that is never done */
    while (g > p->first_normal && !protocol_has(p, is_done, (int)g - 1, 0)) g--;
    return token(p, g == p->first_normal ? "begin" : xfmt("before %u", g), g == p->first_normal ? is_begin : is_before, (int)g, 0);
}

static Ref none_after(Protocol *p, uint32_t f)
{
    Circuit *c = p->m->c;
    Ref r = ir_const(c, 1, 1);
    for (uint32_t h = f + 1; h < p->fields.n; h++) r = ir_and(c, r, ir_not(c, p->fields.data[h].need));
    return r;
}

/* The tail stays as it is, and nothing but it is said after field f. */
static Ref only_staying(Protocol *p, uint32_t f)
{
    Circuit *c = p->m->c;
    Ref r = p->m->tail_stays;
    for (uint32_t h = f + 1; h < p->fields.n; h++)
        if (!p->fields.data[h].tail) r = ir_and(c, r, ir_not(c, p->fields.data[h].need));
    return r;
}

/* Bits [lo, lo + width) of what a field says. */
static Ref field_slice(Circuit *c, const Field *f, unsigned lo, unsigned width)
{
    Ref all = 0;
    for (unsigned i = 0, at = 0; i < FIELD_PARTS && f->part[i]; i++) {
        unsigned w = op_at(c, f->part[i])->width, from = lo > at ? lo : at, to = lo + width < at + w ? lo + width : at + w;
        if (from < to) {
            Ref piece = ir_slice(c, f->part[i], from - at, to - from);
            all = all ? ir_cat2(c, piece, all) : piece;
        }
        at += w;
    }
    return all;
}

static uint32_t add_word(Protocol *p, const Field *f, unsigned lo, unsigned width)
{
    return width ? vec_push(&p->words, field_slice(p->m->c, f, lo, width)) : 0;
}

/* The tail's bits above chunk 0 stay as they are. */
static Ref tail_upper_same(Protocol *p, const Field *f)
{
    Circuit *c = p->m->c;
    Ref old = ir_read(c, (uint32_t)p->m->tail, 0, (Span){0}), x = ir_xor(c, f->part[0], old), r = ir_const(c, 1, 1);
    for (unsigned i = f->chunk_width[0]; i < f->width; i++) r = ir_and(c, r, ir_not(c, ir_slice(c, x, i, 1)));
    return r;
}

/* `emit`: the chunk is due. */
static void chunk_conditions(Protocol *p, uint32_t fi, unsigned j, Ref emit)
{
    Circuit *c = p->m->c;
    const Field *f = &p->fields.data[fi];
    Ref last = none_after(p, fi);
    uint32_t word = add_word(p, f, f->chunk_lo[j], f->chunk_width[j]);
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        Kind *x = &p->kinds.data[k];
        if (x->field != (int)fi || x->chunk != (int)j || x->alone) continue;
        Ref on = emit;
        if (x->form >= 0) on = ir_and(c, on, matches(c, f->part[0], f->chunk_width[0], f->width - f->chunk_width[0], f->form[x->form]));
        if (x->hold) on = ir_and(c, on, ir_not(c, c->retire));
        else if (x->stay) on = ir_and(c, on, only_staying(p, fi));
        else if (x->last && !f->tail) on = ir_and(c, on, last);
        p->kind_ref[k] = on;
        x->word = word;
    }
}

/* `emit`: the field is due. The upper half is all that must be said. */
static void alone_condition(Protocol *p, uint32_t fi, Ref emit)
{
    Circuit *c = p->m->c;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        Kind *x = &p->kinds.data[k];
        const Field *f = &p->fields.data[fi];
        if (x->field != (int)fi || !x->alone) continue;
        p->kind_ref[k] = ir_and(c, ir_and(c, emit, matches(c, f->part[0], 0, f->chunk_lo[1], 0)), none_after(p, fi));
        x->word = add_word(p, f, f->chunk_lo[1], f->chunk_width[1]);
    }
}

/* Chunks go up; chunk 0 starts the field. */
static Ref chunk_due(Protocol *p, uint32_t f, unsigned j)
{
    if (j) return token(p, xfmt("at %u.%u", f, j - 1), is_at, (int)f, (int)j - 1);
    return ir_and(p->m->c, p->fields.data[f].need, eligible(p, f));
}

/* The tail's chunks go down from the top, or chunk 0 alone, which outranks the top, where the upper bits stay as they are. */
static Ref tail_chunk_due(Protocol *p, uint32_t f, unsigned j)
{
    Circuit *c = p->m->c;
    const Field *x = &p->fields.data[f];
    Ref start = ir_and(c, x->need, eligible(p, f));
    Ref next = j + 1 < x->nchunks ? token(p, xfmt("at %u.%u", f, j + 1), is_at, (int)f, (int)j + 1) : 0;
    if (x->nchunks == 1) return start;
    if (j + 1 == x->nchunks) return start;
    return j ? next : ir_or(c, next, ir_and(c, start, tail_upper_same(p, &p->fields.data[f])));
}

static void emit_conditions(Protocol *p, uint32_t fi)
{
    Circuit *c = p->m->c;
    const Field *f = &p->fields.data[fi];
    bool ends = fi < p->first_normal || is_exit(p, fi);
    Ref on = ends ? f->need : ir_and(c, f->need, eligible(p, fi)), last = ends ? 0 : none_after(p, fi);
    uint32_t word = add_word(p, f, 0, f->width);
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        Kind *x = &p->kinds.data[k];
        if (x->field != (int)fi) continue;
        p->kind_ref[k] = x->stay ? ir_and(c, on, only_staying(p, fi)) : x->last && !ends ? ir_and(c, on, last) : on;
        x->word = word;
    }
}

/* A carry says the bits that are not counted as they read; whether it is on, the count's lane says (pass.c). */
static void carry_words(Protocol *p)
{
    Circuit *c = p->m->c;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        Kind *x = &p->kinds.data[k];
        if (!x->carry || !x->width) continue;
        uint32_t s = x->carry - 1;
        unsigned lo = p->m->count_lo[s], up = lo + p->m->count_bits[s], w = c->states.data[s].width;
        Ref v = ir_read(c, s, 0, c->states.data[s].span), high = up < w ? ir_slice(c, v, up, w - up) : 0, low = lo ? ir_slice(c, v, 0, lo) : 0;
        x->word = vec_push(&p->words, high && low ? ir_cat2(c, high, low) : high ? high : low);
    }
}

static void conditions(Protocol *p)
{
    Circuit *c = p->m->c;
    p->kind_ref = xalloc(p->kinds.n * sizeof(Ref));
    for (uint32_t k = 0; k < p->kinds.n; k++) p->kind_ref[k] = ir_const(c, 1, p->kinds.data[k].score == 1);
    for (uint32_t f = 0; f < p->fields.n; f++) {
        if (p->fields.data[f].emit) {
            emit_conditions(p, f);
            continue;
        }
        for (unsigned j = 0; j < p->fields.data[f].nchunks; j++)
            chunk_conditions(p, f, j, p->fields.data[f].tail ? tail_chunk_due(p, f, j) : chunk_due(p, f, j));
        if (has_alone(&p->fields.data[f])) alone_condition(p, f, chunk_due(p, f, 0));
    }
    carry_words(p);
}

uint32_t protocol_channel(Protocol *p, const char *name, bool (*is)(const Protocol *, const Kind *, int, int), int a, int b)
{
    for (uint32_t i = 0; i < p->tok.n; i++)
        if (strcmp(p->tok.data[i].name, name) == 0) return i;
    TokChan t = {.name = name};
    for (uint32_t k = 0; k < p->kinds.n; k++) vec_push(&t.by_kind, is(p, &p->kinds.data[k], a, b) ? TOK_ONE : TOK_ZERO);
    return vec_push(&p->tok, t);
}

const Kind *protocol_kind(const Protocol *p, Role role)
{
    for (uint32_t k = 0; k < p->kinds.n; k++)
        if (p->kinds.data[k].role == role) return &p->kinds.data[k];
    return NULL;
}

bool protocol_has(const Protocol *p, bool (*is)(const Protocol *, const Kind *, int, int), int a, int b)
{
    for (uint32_t k = 0; k < p->kinds.n; k++)
        if (is(p, &p->kinds.data[k], a, b)) return true;
    return false;
}

/* ---- bits per token ---- */

/* The smallest chunks of a field: one where it is what it is, and the tail's must lie within the convolution. */
static unsigned least_payload(const Field *f, unsigned most)
{
    if (f->emit || f->flags) return f->width ? f->width : 1;
    unsigned tail = f->tail ? (f->width + TAPS - 1) / TAPS : 0;
    return tail > MIN_PAYLOAD ? tail : MIN_PAYLOAD < most ? MIN_PAYLOAD : most;
}

/* Chunks, forms and kinds as the payloads are now. */
static uint64_t try_payloads(Protocol *p)
{
    for (uint32_t i = 0; i < p->fields.n; i++) {
        cut_chunks(&p->fields.data[i]);
        choose_forms(p, &p->fields.data[i]);
    }
    p->kinds.n = p->loads.n = 0;
    make_kinds(p);
    return p->vocab;
}

/* Tokens that a value is expected to take, if its size is any with equal chance. */
static double tokens_of(const Protocol *p, const Field *f, unsigned payload)
{
    double n = chunks_of(f->width, payload), fits = n > 1 && (has_forms(p, f) || f->tail) ? (double)payload / f->width : 0;
    return fits + (1 - fits) * n;
}

/* What the payload `to` gains for field i (for the load records: i == fields.n). What is said with a row number is a memory's, and counts
 * less than registers, and these beside a register file, like records of a prompt, hardly at all. */
static double gain_of(const Protocol *p, uint32_t i, unsigned to)
{
    Field load = {.width = p->load_index + p->load_data, .payload = p->load_payload, .with_index = 1};
    const Field *f = i < p->fields.n ? &p->fields.data[i] : &load;
    double weight = i == p->fields.n ? 1 : f->with_index ? 2 : f->tail ? 8 : !f->emit && is_rare(p, f) ? 0.125 : 32;
    bool fewer = chunks_of(f->width, to) < chunks_of(f->width, to - 1);
    if (f->emit || f->flags || to > f->width || !(fewer || to == f->payload + 1)) return 0;
    return weight * (tokens_of(p, f, f->payload) - tokens_of(p, f, to));
}

static unsigned *payload_of(Protocol *p, uint32_t i) { return i < p->fields.n ? &p->fields.data[i].payload : &p->load_payload; }

/* From the smallest payloads on, always the step that gains most per row of the vocabulary, while there is room. */
static bool spend_some(Protocol *p, uint64_t limit)
{
    uint64_t now = try_payloads(p);
    unsigned *best = NULL, best_to = 0;
    double most = 0;
    for (uint32_t i = 0; i <= p->fields.n; i++)
        for (unsigned *w = payload_of(p, i), old = *w, to = old + 1; to <= p->payload; to++) {
            double gain = gain_of(p, i, to);
            if (gain <= 0) continue;
            *w = to;
            uint64_t rows = try_payloads(p);
            *w = old;
            double rate = rows > now ? gain / (double)(rows - now) : gain;
            if (rows <= limit && rate > most) most = rate, best = w, best_to = to;
        }
    if (best) *best = best_to;
    try_payloads(p);
    return best;
}

static void set_payloads(Protocol *p, bool least)
{
    for (uint32_t i = 0; i < p->fields.n; i++) {
        unsigned low = least_payload(&p->fields.data[i], p->payload);
        p->fields.data[i].payload = least || low > p->payload ? low : p->payload;
    }
    p->load_payload = least && p->payload > MIN_PAYLOAD ? MIN_PAYLOAD : p->payload;
}

/* Payloads for a vocabulary of at most `limit`. Small registers that share a field, of three kinds, may take an eighth of it. */
static void fit_vocabulary(Protocol *p, uint64_t limit)
{
    while (p->pack > MIN_PAYLOAD && 3ull << p->pack > limit / 8) p->pack--;
    collect_fields(p);
    set_payloads(p, true);
    for (uint32_t i = 0; i < p->fields.n; i++) p->fields.data[i].brief = true;
    while (spend_some(p, limit)) {}
}

Protocol *protocol_derive(Modes *m, const BuildOptions *o)
{
    Protocol *p = xalloc(sizeof *p);
    p->m = m;
    p->options = o;
    p->payload = o->payload ? o->payload : DEFAULT_PAYLOAD;
    p->pack = p->payload;
    p->group_rows = o->target->dk;
    p->packed = xalloc(m->c->writes.n + 1);
    collect_fields(p);
    set_payloads(p, false);
    if (try_payloads(p) > o->vocab && o->vocab) fit_vocabulary(p, o->vocab);
    conditions(p);
    return p;
}
