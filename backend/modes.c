/* modes.c: which state elements are written directly (free) and which through tokens, by the law of the machine: a direct write needs
 * its address, data and enable below the element's home layer. A home is raised to make a write direct when that adds no depth. */
#include "modes.h"
#include <stdlib.h>
#include <string.h>

enum { LATE_ROUNDS = 4 };

const Write *write_of(const Circuit *c, uint32_t s)
{
    for (uint32_t i = 0; i < c->writes.n; i++)
        if (c->writes.data[i].state == s) return &c->writes.data[i];
    return NULL;
}

/* ---- accumulators ---- */

/* 4 * 2^6 - 1 <= 256: so many steps of a count are exact in bf16 (gates of 4n - 4t + 3). float32 could count further: each bit doubles the units. */
static unsigned most_counted(bool bf16) { return bf16 ? 6 : 7; }

typedef struct {
    uint32_t state;
    unsigned lo; /* 64: not known yet */
} Advance;

/* READ(state) + (1 << lo) */
static bool advances(const Circuit *c, Ref data, Advance *a)
{
    if (op_at(c, data)->kind != OP_ADD) return false;
    for (unsigned k = 0; k < 2; k++) {
        uint64_t v;
        const Op *r = op_at(c, arg_at(c, data, k));
        if (r->kind != OP_READ || r->imm != a->state || !ir_is_const(c, arg_at(c, data, 1 - k), &v)) continue;
        if (v == 0 || (v & (v - 1)) || (a->lo != 64 && a->lo != clog2(v))) continue;
        a->lo = clog2(v);
        return true;
    }
    return false;
}

/* READ(state) */
static bool stays(const Circuit *c, Ref data, Advance *a) { return op_at(c, data)->kind == OP_READ && op_at(c, data)->imm == a->state; }

/* The condition under which the choices in `data` come to what `is` accepts; 0 when they never do. */
static Ref comes_to(Circuit *c, Ref data, bool (*is)(const Circuit *, Ref, Advance *), Advance *a)
{
    const Op o = *op_at(c, data);
    Ref r = 0;
    if (is(c, data, a)) return ir_const(c, 1, 1);
    if (o.kind == OP_MUX) {
        Ref cond = arg_at(c, data, 0), x = comes_to(c, arg_at(c, data, 1), is, a), y = comes_to(c, arg_at(c, data, 2), is, a);
        if (x) r = ir_and(c, cond, x);
        if (y) y = ir_and(c, ir_not(c, cond), y), r = r ? ir_or(c, r, y) : y;
    } else if (o.kind == OP_PMUX) {
        for (uint32_t i = 0; i < o.nargs; i += 2) {
            Ref x = comes_to(c, arg_at(c, data, i + 1), is, a);
            if (!x) continue;
            x = ir_and(c, arg_at(c, data, i), x);
            r = r ? ir_or(c, r, x) : x;
        }
    }
    return r;
}

/* Registers that advance in every step. Their upper bits are said, by a token of its own, only when the count below them is full, and are
 * never written otherwise. The lane reaches 2^bits before that token, one step more than the tail's. They are read above layer 0, where in float32 with
 * a query scale that is no power of two what is read stands on a constant, which does not go into one exact sum with the 2^44 HOT that counts. */
static void choose_counts(Modes *m, bool bf16)
{
    Circuit *c = m->c;
    if (!bf16 && clog2(m->target->dk) & 1) return;
    for (uint32_t s = 0; s < c->states.n; s++) {
        const Write *w = write_of(c, s);
        const State *st = &c->states.data[s];
        if ((int)s == m->tail) continue;
        unsigned most = bf16 ? most_counted(bf16) - 1 : most_counted(bf16);
        Advance a = {s, 64};
        uint64_t v;
        if (st->kind != ST_REG || !w || st->hidden || w->lanes || st->lane < st->width) continue;
        Ref adv = comes_to(c, w->data, advances, &a);
        w = write_of(c, s);
        if (!adv || !ir_is_const(c, adv, &v) || !v || !writes_every_step(c, w)) continue;
        unsigned bits = st->width - a.lo < most ? st->width - a.lo : most;
        if (st->width - bits > m->payload) continue;
        m->count_lo[s] = a.lo, m->count_bits[s] = bits;
        m->mode[s] = MODE_COUNT;
    }
}

/* The condition under which the register keeps its value: it is not written, or with what it is. 0: never. */
static Ref tail_stays(Circuit *c, uint32_t s)
{
    const Write w = *write_of(c, s);
    Ref same = comes_to(c, w.data, stays, &(Advance){.state = s}), r = ir_not(c, w.en);
    uint64_t v;
    if (same) r = ir_or(c, r, same);
    return ir_is_const(c, r, &v) && !v ? 0 : r;
}

/* A register that counts in every step is the tail only where no other could be it as well. */
static void choose_tail(Modes *m, bool bf16)
{
    Circuit *c = m->c;
    m->tail = -1;
    for (uint32_t s = 0; s < c->states.n; s++) {
        const Write *w = write_of(c, s);
        const State *st = &c->states.data[s];
        if (st->kind != ST_REG || !w || st->hidden || m->mode[s] == MODE_COUNT) continue;
        Advance a = {s, 64};
        Ref adv = comes_to(c, w->data, advances, &a);
        w = write_of(c, s);
        bool better = m->tail < 0 || (adv && !m->tail_adv) || (st->init == INIT_ENTRY && (adv || !m->tail_adv));
        if (!better) continue;
        m->tail = (int)s;
        m->tail_adv = adv ? ir_and(c, w->en, adv) : 0;
        m->cnt_lo = adv ? a.lo : 0;
        unsigned room = st->width - m->cnt_lo;
        m->cnt_bits = !adv ? 0 : room < most_counted(bf16) ? room : most_counted(bf16);
    }
    if (m->tail >= 0) m->mode[m->tail] = MODE_TAIL;
    m->tail_stays = m->tail_adv ? tail_stays(c, (uint32_t)m->tail) : 0;
}

static void choose_silent(Modes *m, bool bf16)
{
    bool counts = false;
    m->tail = -1;
    choose_counts(m, bf16);
    choose_tail(m, bf16);
    for (uint32_t s = 0; s < m->c->states.n; s++) counts |= m->mode[s] == MODE_COUNT;
    if (m->tail_adv || !counts) return;
    for (uint32_t s = 0; s < m->c->states.n; s++) /* the tail's own count is cheaper than another one: one of them is the tail, the others stay */
        if (m->mode[s] == MODE_COUNT || (int)s == m->tail) m->mode[s] = MODE_FED, m->count_bits[s] = 0;
    choose_tail(m, bf16);
    choose_counts(m, bf16);
}

/* ---- room for ports ---- */

enum { MAX_LAYERS = 1024 };

/* Pilot lanes of a value head: dv over them is a power of four, so that the norm's factor is a power of two. */
unsigned pilot_lanes(unsigned dv) { return (clog2(dv) & 1) ? 2 : 1; }

static unsigned heads_for(unsigned bits, unsigned cap) { return (bits + cap - 1) / cap; }

unsigned port_heads(const Port *q, unsigned dv)
{
    unsigned cap = dv - pilot_lanes(dv);
    if (q->cnt_bits) return heads_for(q->cnt_lo, cap) + 1 + heads_for(q->width - q->cnt_lo - q->cnt_bits, cap); /* a count has one to itself */
    if (q->lane >= q->width) return heads_for(q->width, cap);
    unsigned n = 0;
    for (unsigned i = 0; i < q->width; i += q->lane) n += heads_for(q->width - i < q->lane ? q->width - i : q->lane, cap);
    return n;
}

static uint32_t free_keys(const Modes *m, int layer)
{
    const Target *t = m->target;
    if (t->native) return UINT32_MAX / 2;
    uint32_t r = t->value_heads / t->key_heads, used = m->keys[layer] + (m->shared[layer] + r - 1) / r;
    uint32_t all = layer ? t->key_heads : t->key_heads / 2; /* the other half of layer 0 is for stage registers and latches */
    return used < all ? all - used : 0;
}

bool state_is_filled(const State *s)
{
    bool rows = false;
    for (uint32_t i = 0; i < s->nrow_init; i++) rows |= s->row_init[i] != 0;
    return s->init == INIT_ROWS ? rows : s->init != INIT_ZERO;
}

/* One without contents reads 0 anywhere; in attention no token would ever load it. */
bool state_is_rom(const State *s) { return s->home == HOME_ATTENTION && state_is_filled(s); }

static void set_slices(Port *q, struct Slice *s, uint32_t n)
{
    q->slices = s;
    q->nslices = n;
    q->home = s[0].layer;
    q->last = s[n - 1].layer;
}

/* Attention layers hold nothing else; ROMs of one layer have a head each. Layer 0 is for stage registers. */
static void place_rom(Modes *m, Port *q)
{
    unsigned heads = m->target->native ? 64 : m->target->attn_kv_heads;
    for (int l = q->home < 1 ? 1 : q->home; l < MAX_LAYERS; l++) {
        if (m->deltanet[l] || m->keys[l] >= heads) continue;
        m->attention[l] = true;
        m->keys[l]++;
        struct Slice *s = xalloc(sizeof *s);
        *s = (struct Slice){l, 0, 1};
        set_slices(q, s, 1);
        return;
    }
    die("no room for %s", q->name);
}

/* No layer of the target holds a group of the port's rows: it is put somewhere, and the machine is refused. */
static struct Slice no_room(Modes *m, const Port *q, uint32_t done, uint32_t groups)
{
    Arena *built = arena_use(NULL); /* the message outlives it */
    if (!m->error)
        m->error = xfmt("no layer of the target %s (%u key heads, %u value heads of %u) has room for %s", m->target->name, m->target->key_heads,
                        m->target->value_heads, m->target->dv, q->name);
    arena_use(built);
    return (struct Slice){q->home, done, groups - done};
}

void modes_place(Modes *m, Port *q)
{
    if (q->kind == PORT_ROM) {
        place_rom(m, q);
        return;
    }
    const Target *t = m->target;
    uint32_t r = t->native ? 1 : t->value_heads / t->key_heads, h = port_heads(q, t->dv);
    uint32_t groups = q->rows > 1 ? (q->rows + t->dk - 1) / t->dk : 1, done = 0;
    uint32_t full = q->rows > t->dk ? q->rows / t->dk : groups; /* a last group of fewer rows has keys of its own: the others' reach further */
    VEC(struct Slice) slices = {0};
    for (int l = q->home; done < groups; l++) {
        if (l >= MAX_LAYERS) {
            vec_push(&slices, no_room(m, q, done, groups));
            break;
        }
        if (m->attention[l]) continue;
        if (q->rows == 1 && q->late == LIT0) { /* shares key heads */
            if (!t->native && free_keys(m, l) * r < h + r) continue;
            m->shared[l] += h;
            m->deltanet[l] = true;
            vec_push(&slices, ((struct Slice){l, 0, 1}));
            break;
        }
        for (int part = 0; part < 2 && done < groups; part++) {
            uint32_t fit = t->native ? groups : free_keys(m, l) * r / h, left = (done < full ? full : groups) - done;
            if (fit > left) fit = left;
            if (!fit) break;
            vec_push(&slices, ((struct Slice){l, done, fit}));
            m->deltanet[l] = true;
            if (!t->native) m->keys[l] += (fit * h + r - 1) / r;
            done += fit;
        }
    }
    set_slices(q, memcpy(xalloc(slices.n * sizeof *slices.data), slices.data, slices.n * sizeof *slices.data), slices.n);
    free(slices.data);
}

/* ---- ports for reads ---- */

/* Bit i of the count n in [0, max]: sum over the t at which it flips of [n >= t], each as
 * (relu(4(n-t)+3) - relu(4(n-t)+1)) / 2, which is right for any n within 0.14 of an integer: the count is a sum of small
 * increments that need not be exact in every dtype (numerics.md). */
static Lit count_bit(Net *n, Node cnt, int max, unsigned i)
{
    int step = 1 << i;
    Expr e = {lin_const(0), 0, xalloc((size_t)(2 * (max / step) + 2) * sizeof(Term))};
    for (int t = step, sign = 1; t <= max; t += step, sign = -sign)
        for (int half = 0; half < 2; half++) {
            Lin core = lin_node(cnt, 4);
            core.k = -4 * t + (half ? 1 : 3);
            e.t[e.n++] = term_core(core, 4 * (max - t) + (half ? 1 : 3), half ? -0.5 * sign : 0.5 * sign);
        }
    return g_expr(n, e, 0, 1, (Span){0}) * 2;
}

static Lit *port_bits(Net *n, Modes *m, Port *p)
{
    Lit *out = xalloc(p->width * sizeof *out);
    uint32_t id = n->ports.n - 1;
    for (unsigned i = 0; i < p->width; i++) {
        bool counted = i >= p->cnt_lo && i < p->cnt_lo + p->cnt_bits;
        if (!counted) out[i] = g_input(n, N_PORT, id, i, 0, 1) * 2;
    }
    if (!p->cnt_bits) return out;
    p->cnt = g_input(n, N_PORT, id, p->cnt_lo, 0, p->cnt_max);
    for (unsigned i = 0; i < p->cnt_bits; i++) out[p->cnt_lo + i] = count_bit(n, p->cnt, p->cnt_max, i);
    if (m->mode[p->state] != MODE_COUNT) return out;
    p->full = count_bit(n, p->cnt, p->cnt_max, p->cnt_bits);
    unsigned up = p->cnt_lo + p->cnt_bits, w = p->width - up; /* a full lane is one more above it */
    Lit *one = xalloc(w * sizeof *one + 1); /* LIT0 */
    if (w) m_add(n, w, out + up, one, p->full, LIT1, out + up, p->span);
    return out;
}

void modes_count(const Modes *m, Port *p)
{
    bool tail = (int)p->state == m->tail;
    p->cnt_lo = tail ? m->cnt_lo : m->count_lo[p->state];
    p->cnt_bits = tail ? m->cnt_bits : m->count_bits[p->state];
    p->cnt_max = !p->cnt_bits ? 0 : (1 << p->cnt_bits) - tail;
}

static Lit *read_port(Net *n, Ref r, BitMap *bits, void *ctx)
{
    Modes *m = ctx;
    const Op *o = op_at(m->c, r);
    const State *st = &m->c->states.data[o->imm];
    Port p = {.kind = state_is_rom(st) ? PORT_ROM : PORT_STATE, .name = st->name, .state = (uint32_t)o->imm, .width = st->width, .lane = st->lane,
              .rows = st->rows, .has_hard = st->has_hard, .hard_row = st->hard_row, .span = o->span};
    int t = -1;
    map_label(n, m->labelled);
    m->labelled = n->nodes.n;
    if (o->nargs) {
        p.nraddr = op_at(m->c, arg_at(m->c, r, 0))->width;
        p.raddr = bits->bits[arg_at(m->c, r, 0)];
        for (uint32_t i = 0; i < p.nraddr; i++)
            if (map_lit_label(n, p.raddr[i]) > t) t = map_lit_label(n, p.raddr[i]);
    }
    p.home = home_after(t);
    if (m->min_home[o->imm] > p.home) p.home = m->min_home[o->imm];
    modes_count(m, &p);
    if (m->mode[o->imm] == MODE_LATE) p.late = LIT1; /* which condition it is, pass.c says */
    modes_place(m, &p);
    vec_push(&n->ports, p);
    Lit *out = port_bits(n, m, &n->ports.data[n->ports.n - 1]);
    map_label(n, m->labelled);
    m->labelled = n->nodes.n;
    return out;
}

void modes_build(Modes *m, const Ref *roots, unsigned nroots)
{
    m->arena = arena_new();
    Arena *outer = arena_use(m->arena);
    m->net = net_new(m->c);
    m->labelled = 1;
    m->keys = xalloc(MAX_LAYERS * sizeof *m->keys);
    m->shared = xalloc(MAX_LAYERS * sizeof *m->shared);
    m->attention = xalloc(MAX_LAYERS);
    m->deltanet = xalloc(MAX_LAYERS);
    m->deltanet[0] = true;
    m->bits = g_blast(m->net, roots, nroots, read_port, m, m->idle);
    map_label(m->net, m->labelled);
    m->labelled = m->net->nodes.n;
    arena_use(outer);
}

void modes_drop(Modes *m)
{
    net_free(m->net);
    arena_free(m->arena);
    m->net = NULL, m->arena = NULL;
}

/* ---- homes ---- */

static int ref_label(const Modes *m, Ref r)
{
    int t = -1;
    for (unsigned i = 0; r && i < op_at(m->c, r)->width; i++) {
        int x = map_lit_label(m->net, m->bits.bits[r][i]);
        t = x > t ? x : t;
    }
    return t;
}

static bool keep_older(const Net *n, Lit l, void *ctx)
{
    return map_lit_label(n, l) <= *(int *)ctx;
}

/* The latest time among address, data and the enable's AND-literals (a port ANDs literals for free). */
static int write_time(const Modes *m, const Write *w)
{
    int t = ref_label(m, w->index), d = ref_label(m, w->data), l = ref_label(m, w->lanes);
    t = d > t ? d : t;
    t = l > t ? l : t;
    Lit *lits;
    uint32_t n;
    g_and_lits(m->net, m->bits.bits[w->en][0], keep_older, &t, &lits, &n);
    for (uint32_t i = 0; i < n; i++)
        if (map_lit_label(m->net, lits[i]) > t) t = map_lit_label(m->net, lits[i]);
    return t;
}

/* What the step must say ends at this time. Direct writes count only up to their home. */
static int step_depth(const Modes *m)
{
    int d = 0;
    for (uint32_t i = 0; i < m->c->writes.n; i++) {
        const Write *w = &m->c->writes.data[i];
        int t = write_time(m, w);
        if (m->mode[w->state] == MODE_COUNT) continue;
        if (m->mode[w->state] != MODE_DIRECT) {
            int e = ref_label(m, w->en);
            t = e > t ? e : t;
        }
        if (m->mode[w->state] == MODE_LATE && 2 * m->min_home[w->state] + 1 > t) t = 2 * m->min_home[w->state] + 1;
        d = t > d ? t : d;
    }
    for (uint32_t i = 0; i < m->c->emits.n; i++) {
        const Emit *e = &m->c->emits.data[i];
        int t = write_time(m, &(Write){.en = e->en, .data = e->payload});
        d = t > d ? t : d;
    }
    return d;
}

static Ref *step_roots(const Circuit *c, unsigned *n)
{
    Ref *r = xalloc((c->writes.n * 4 + c->emits.n * 2 + 2) * sizeof *r);
    *n = 0;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        r[(*n)++] = w->en, r[(*n)++] = w->index, r[(*n)++] = w->data, r[(*n)++] = w->lanes;
    }
    for (uint32_t i = 0; i < c->emits.n; i++) r[(*n)++] = c->emits.data[i].en, r[(*n)++] = c->emits.data[i].payload;
    if (c->retire) r[(*n)++] = c->retire;
    return r;
}

/* The home that a delayed write needs: a key's literal says whether it happens. */
static int late_home(const Modes *m, const Write *w)
{
    int t = write_time(m, w), e = ref_label(m, w->en), h = home_after(e > t ? e : t);
    return h < 1 ? 1 : h;
}

static int home_needed(const Modes *m, const Write *w)
{
    int mode = m->mode[w->state];
    return mode == MODE_DIRECT ? home_after(write_time(m, w)) : mode == MODE_LATE ? late_home(m, w) : 0;
}

/* Every direct or delayed write is known when its element's lowest block comes: raising one home may have made another's operands late. */
static bool direct_in_time(const Modes *m)
{
    for (uint32_t i = 0; i < m->c->writes.n; i++)
        if (home_needed(m, &m->c->writes.data[i]) > m->min_home[m->c->writes.data[i].state]) return false;
    return true;
}

/* Raises the homes that came too low; false when none did. */
static bool raise_homes(Modes *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->c->writes.n; i++) {
        int h = home_needed(m, &m->c->writes.data[i]), *home = &m->min_home[m->c->writes.data[i].state];
        if (h > *home) *home = h, any = true;
    }
    return any;
}

/* Homes depend on each other (a raised home moves what it feeds), so a candidate is tried by building the whole step again, and what was there
 * before is kept until the candidate is taken. */
static void build_trial(Modes *m, const Modes *before, const Ref *roots, unsigned nroots)
{
    if (m->net != before->net) modes_drop(m);
    modes_build(m, roots, nroots);
    m->depth = step_depth(m);
}

static void take(Modes *m, Modes *before)
{
    if (m->net != before->net) modes_drop(before);
}

/* What a trial found to have no room remains said. */
static void undo(Modes *m, const Modes *before)
{
    const char *error = m->error;
    if (m->net != before->net) modes_drop(m);
    *m = *before;
    m->error = error;
}

static void try_direct(Modes *m, uint32_t s, const Ref *roots, unsigned nroots)
{
    const Write *w = write_of(m->c, s);
    Modes before = *m;
    int old_home = m->min_home[s];
    if (!hazard_free(m, s)) return;
    bool forward = m->c->states.data[s].forward; /* reads see the write: it cannot come with a later token, whatever that costs */
    m->mode[s] = MODE_DIRECT;
    for (int round = 0; round < 3; round++) { /* raising the home may move the write's own operands */
        int h = home_after(write_time(m, w));
        if (h < 1) h = 1;
        if (h == m->min_home[s]) break;
        m->min_home[s] = h;
        build_trial(m, &before, roots, nroots);
        if (m->depth > before.depth && !forward) break;
    }
    if ((m->depth <= before.depth || forward) && direct_in_time(m)) {
        take(m, &before);
        return;
    }
    m->mode[s] = MODE_FED;
    m->min_home[s] = old_home;
    undo(m, &before);
}

/* A register whose next value is known below its home, if that is raised: the pass that reads the step's last token takes enable and value of
 * the pass before through the conv taps, so that nobody sees the write too early. A value that depends on the register itself never comes
 * to an end here. */
static void try_late(Modes *m, uint32_t s, const Ref *roots, unsigned nroots)
{
    const Write *w = write_of(m->c, s);
    const State *st = &m->c->states.data[s];
    Modes before = *m;
    if (st->kind != ST_REG || st->hidden || st->forward || w->lanes || w->index || state_is_filled(st)) return;
    size_t size = m->c->states.n * sizeof *m->min_home;
    int *old_homes = memcpy(xalloc(size), m->min_home, size);
    m->mode[s] = MODE_LATE;
    for (int round = 0; round < LATE_ROUNDS && m->depth <= before.depth && (raise_homes(m) || !round); round++)
        build_trial(m, &before, roots, nroots);
    if (m->depth <= before.depth && direct_in_time(m)) {
        take(m, &before);
        return;
    }
    m->mode[s] = MODE_FED;
    memcpy(m->min_home, old_homes, size);
    undo(m, &before);
}

/* A file whose row number is known below its home need not be told it: the conv tap has it. Copies of constant rows sit lower than the
 * others; they are raised where that costs nothing. */
static void try_tap(Modes *m, uint32_t s, const Ref *roots, unsigned nroots)
{
    const Write *w = write_of(m->c, s);
    if (!w->index) return;
    Modes before = *m;
    int old = m->min_home[s], h = home_after(ref_label(m, w->index));
    if (h <= old) return;
    m->min_home[s] = h;
    build_trial(m, &before, roots, nroots);
    if (m->depth <= before.depth && direct_in_time(m)) {
        take(m, &before);
        return;
    }
    m->min_home[s] = old;
    undo(m, &before);
}

Modes modes_choose(Circuit *c, const Target *target, bool bf16, unsigned payload)
{
    Modes m = {.c = c, .target = target, .mode = xalloc((c->states.n + 1) * sizeof(int)), .min_home = xalloc((c->states.n + 1) * sizeof(int)),
               .count_lo = xalloc((c->states.n + 1) * sizeof(unsigned)), .count_bits = xalloc((c->states.n + 1) * sizeof(unsigned)),
               .payload = payload};
    m.idle = idle_find(c);
    for (uint32_t s = 0; s < c->states.n; s++) {
        m.mode[s] = c->states.data[s].kind == ST_HOST ? MODE_HOST : write_of(c, s) ? MODE_FED : MODE_CONST;
        /* layer 0 holds the stage registers that the others are written from, by steps and by loading */
        m.min_home[s] = m.mode[s] == MODE_FED || state_is_filled(&c->states.data[s]);
    }
    choose_silent(&m, bf16);
    if (m.tail >= 0) m.min_home[m.tail] = 0;
    unsigned nroots;
    Ref *roots = step_roots(c, &nroots);
    modes_build(&m, roots, nroots);
    m.depth = step_depth(&m);
    static const StateKind order[] = {ST_MEM, ST_FILE, ST_REG};
    for (unsigned k = 0; k < 3; k++)
        for (uint32_t s = 0; s < c->states.n; s++)
            if (c->states.data[s].kind == order[k] && m.mode[s] == MODE_FED && (!c->states.data[s].hidden || c->states.data[s].forward))
                try_direct(&m, s, roots, nroots);
    for (uint32_t s = 0; s < c->states.n; s++)
        if (m.mode[s] == MODE_FED) try_late(&m, s, roots, nroots);
    for (uint32_t s = 0; s < c->states.n; s++)
        if (m.mode[s] == MODE_FED && c->states.data[s].rows <= target->dk) try_tap(&m, s, roots, nroots);
    return m;
}
