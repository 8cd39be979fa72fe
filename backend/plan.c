/* plan.c: from the covered network to channels and units.
 *
 * Every value that is needed gets a channel from the time it is computed to its last use. A value of the form "older value + units" takes over
 * the older one's channel when that has no later use (a residual stream adds anyway). When a target's channels run out, dead ones are erased
 * by one unit each (gate 1, up = the channel, down = -1) and used again.
 *
 * Where a float32 head's query scale 1/sqrt(dk) is no power of two, what it reads is off by some ulps. The channel that receives it therefore
 * begins as SNAP (a count's as SNAP_COUNT): next to that number float32 has no others than multiples of 2^-17 (2^-12), and the residual addition
 * gives the integer. Forms subtract the constant. */
#include "plan.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t ch;
    int dead; /* its value has no use after this time */
} DeadChan;

typedef struct {
    Plan *p;
    const Net *n;
    int *last;          /* per node: latest time that reads it, -2: none */
    uint32_t *owner_ch; /* per node: its channel, or NONE */
    bool *taken;        /* per node: its channel went to a later value */
    VEC(DeadChan) pool;
} Slots;

enum { NONE = UINT32_MAX, FOREVER = INT32_MAX, SNAP = 64, SNAP_COUNT = 2048 };

/* ---- last uses ---- */

static void use_lin(Slots *s, Lin l, int t)
{
    for (uint32_t i = 0; i < l.n; i++)
        if (s->last[l.t[i].node] < t) s->last[l.t[i].node] = t;
}

static void use_lits(Slots *s, const Lit *l, uint32_t n, int t)
{
    for (uint32_t i = 0; l && i < n; i++) use_lin(s, lin_lit(l[i]), t);
}

static void last_uses(Slots *s)
{
    const Net *n = s->n;
    for (Node i = 0; i < n->nodes.n; i++) s->last[i] = -2;
    for (Node i = 1; i < n->nodes.n; i++) {
        const NodeInfo *x = &n->nodes.data[i];
        if (x->time < 0 || x->kind == N_PORT) continue;
        use_lin(s, x->impl.lin, x->time);
        for (uint32_t k = 0; k < x->impl.n; k++) {
            use_lin(s, x->impl.t[k].core, x->time);
            use_lin(s, x->impl.t[k].up, x->time);
            use_lits(s, x->impl.t[k].lits, x->impl.t[k].nlits, x->time);
        }
    }
    for (uint32_t i = 0; i < n->ports.n; i++) {
        const Port *q = &n->ports.data[i];
        int t = 2 * q->last;
        use_lits(s, q->raddr, q->nraddr, t);
        use_lits(s, &q->rgate, 1, t);
        use_lits(s, &q->load_on, 1, t);
        if (q->load_on != LIT0) use_lits(s, q->load_addr, q->nload_addr, t), use_lits(s, q->load_data, q->width, t);
        if (!q->written) continue;
        use_lits(s, q->waddr, q->nwaddr, t);
        use_lits(s, q->en, q->nen, t);
        use_lits(s, q->lanes, port_lanes(q), t);
        use_lits(s, q->lane_key, port_lanes(q), t);
        use_lits(s, q->en_any, 2, t);
        use_lits(s, q->data, q->width, t);
        use_lits(s, &q->bump, 1, t);
        use_lits(s, &q->late, 1, t);
        use_lits(s, &q->latch_begin, 1, t);
        use_lits(s, &q->latch_set, 1, t);
    }
    use_lits(s, n->kind_out.data, n->kind_out.n, FOREVER);
    for (uint32_t k = 0; k < n->nwords; k++) use_lits(s, n->word_out[k], n->word_width[k], FOREVER);
}

/* ---- units ---- */

static uint64_t lin_hash(uint64_t h, Lin l)
{
    h = (h ^ (uint32_t)l.k) * 0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < l.n; i++) h = (h ^ ((uint64_t)l.t[i].node << 32 | (uint32_t)l.t[i].coef)) * 0xff51afd7ed558ccdull, h ^= h >> 29;
    return h;
}

static bool lin_same(Lin a, Lin b)
{
    return a.k == b.k && a.n == b.n && (!a.n || !memcmp(a.t, b.t, a.n * sizeof *a.t));
}

static void mlp_rehash(Mlp *m)
{
    m->hash_cap = m->hash_cap ? m->hash_cap * 2 : 1024;
    m->hash = xalloc(m->hash_cap * sizeof *m->hash);
    for (uint32_t i = 0; i < m->units.n; i++) {
        uint64_t k = lin_hash(lin_hash(1, m->units.data[i].gate), m->units.data[i].up) & (m->hash_cap - 1);
        while (m->hash[k]) k = (k + 1) & (m->hash_cap - 1);
        m->hash[k] = i + 1;
    }
}

/* Adds coef * relu(gate) * up to channel ch in one MLP; equal units are one. */
static void add_unit(Mlp *m, Lin gate, int32_t gmax, Lin up, uint32_t ch, double coef, Span span)
{
    if (2 * (m->units.n + 1) > m->hash_cap) mlp_rehash(m);
    uint64_t k = lin_hash(lin_hash(1, gate), up) & (m->hash_cap - 1);
    for (; m->hash[k]; k = (k + 1) & (m->hash_cap - 1)) {
        Unit *u = &m->units.data[m->hash[k] - 1];
        if (lin_same(u->gate, gate) && lin_same(u->up, up)) break;
    }
    if (!m->hash[k]) {
        vec_push(&m->units, ((Unit){.gate = gate, .up = up, .gmax = gmax, .span = span}));
        m->hash[k] = m->units.n;
    }
    Unit *u = &m->units.data[m->hash[k] - 1];
    for (uint32_t i = 0; i < u->out.n; i++)
        if (u->out.data[i].ch == ch) {
            u->out.data[i].coef += coef;
            return;
        }
    vec_push(&u->out, ((Out){ch, coef}));
}

/* The affine form over nodes as one over channels. */
static Lin over_channels(const Plan *p, Lin l)
{
    Lin r = lin_const(l.k);
    for (uint32_t i = 0; i < l.n; i++) r = lin_add(r, p->alias[l.t[i].node], l.t[i].coef);
    return r;
}

/* ---- channels ---- */

static uint32_t new_channel(Slots *s, int t, int32_t value)
{
    Plan *p = s->p;
    if (!p->limit || p->nchannels < p->limit) {
        if (value) vec_push(&p->start, ((StartChan){p->nchannels, value}));
        return p->nchannels++;
    }
    for (uint32_t i = 0; i < s->pool.n; i++) {
        int dead = s->pool.data[i].dead, erase = dead < 1 ? 1 : dead % 2 ? dead : dead + 1;
        if (erase > t) continue;
        uint32_t ch = s->pool.data[i].ch;
        s->pool.data[i] = s->pool.data[--s->pool.n];
        add_unit(&p->mlp[erase / 2], lin_const(1), 1, lin_node(ch, 1), ch, -1, (Span){0});
        if (value) add_unit(&p->mlp[erase / 2], lin_const(1), 1, lin_const(1), ch, value, (Span){0});
        p->erased++;
        return ch;
    }
    p->overflow = true;
    return p->nchannels++;
}

/* What the channel of port bit x begins as. */
static int32_t snap_of(const Slots *s, const NodeInfo *x)
{
    const Port *q = x->kind == N_PORT ? &s->n->ports.data[x->port] : NULL;
    if (!q || q->kind == PORT_ROM || s->p->opt->bf16 || clog2(s->p->opt->target->dk) % 2 == 0) return 0;
    return q->cnt_bits && x->portbit == q->cnt_lo ? SNAP_COUNT : SNAP;
}

/* When a node's channel must be its own, and 0: what a port reads comes in from its first layer on. */
static int channel_time(const Net *n, Node i)
{
    const NodeInfo *x = &n->nodes.data[i];
    return x->kind == N_PORT && x->time > 2 * n->ports.data[x->port].home ? 2 * n->ports.data[x->port].home : x->time;
}

static bool can_take(const Slots *s, const NodeInfo *x)
{
    Lin l = x->impl.lin;
    if (l.n != 1 || l.t[0].coef != 1 || x->impl.n == 0) return false;
    Node o = l.t[0].node;
    return s->owner_ch[o] != NONE && !s->taken[o] && s->last[o] <= x->time;
}

static void place(Slots *s, Node i)
{
    Plan *p = s->p;
    const NodeInfo *x = &s->n->nodes.data[i];
    uint32_t ch;
    Lin base = lin_const(x->impl.lin.k);
    bool computed = x->kind != N_TOKEN && x->kind != N_PORT;
    Mlp *m = computed ? &p->mlp[x->time / 2] : NULL;
    if (computed && !x->impl.n && !x->impl.lin.n) { /* a constant after all: needs no channel */
        p->alias[i] = base;
        return;
    }
    if (m && can_take(s, x)) {
        Node o = x->impl.lin.t[0].node;
        s->taken[o] = true;
        ch = s->owner_ch[o];
        base = lin_add(base, p->alias[o], 1);
        base = lin_add(base, lin_node(ch, 1), -1);
    } else {
        int32_t snap = snap_of(s, x);
        ch = new_channel(s, channel_time(s->n, i), snap);
        base.k -= snap;
        if (m && x->impl.lin.n) {
            Lin up = x->impl.lin;
            up.k = 0;
            up = over_channels(p, up);
            base.k += up.k;
            up.k = 0;
            add_unit(m, lin_const(1), 1, up, ch, 1, x->span);
        }
    }
    for (uint32_t k = 0; m && k < x->impl.n; k++) {
        const Term *t = &x->impl.t[k];
        int32_t gmax;
        Lin gate = over_channels(p, term_gate(*t, &gmax));
        add_unit(m, gate, gmax, over_channels(p, t->up), ch, t->coef, x->span);
    }
    s->owner_ch[i] = ch;
    p->alias[i] = lin_add(base, lin_node(ch, 1), 1);
}

static const Net *sort_net;
static int by_time(const void *a, const void *b)
{
    Node x = *(const Node *)a, y = *(const Node *)b;
    int tx = channel_time(sort_net, x), ty = channel_time(sort_net, y);
    return tx != ty ? (tx < ty ? -1 : 1) : x < y ? -1 : 1;
}

/* Channels whose value has no use at or after time t join the pool, so that times are handled in order. */
static void retire_nodes(Slots *s, const Node *order, uint32_t n, int t)
{
    for (uint32_t i = 0; i < n; i++) {
        Node x = order[i];
        if (s->owner_ch[x] == NONE || s->taken[x] || s->last[x] > t) continue;
        int born = s->n->nodes.data[x].time;
        int dead = s->last[x] > born + 1 ? s->last[x] : born + 1;
        vec_push(&s->pool, ((DeadChan){s->owner_ch[x], dead}));
        s->taken[x] = true;
    }
}

static void place_all(Slots *s)
{
    const Net *n = s->n;
    Node *order = xalloc(n->nodes.n * sizeof *order);
    uint32_t k = 0;
    for (Node i = 1; i < n->nodes.n; i++)
        if (n->nodes.data[i].time != -2) order[k++] = i;
    sort_net = n;
    qsort(order, k, sizeof *order, by_time);
    for (uint32_t i = 0; i < k; i++) {
        int t = channel_time(n, order[i]);
        if (s->p->limit && (i == 0 || channel_time(n, order[i - 1]) != t)) retire_nodes(s, order, i, t);
        place(s, order[i]);
    }
}

/* ---- ports and outputs ---- */

static Lin *forms(const Plan *p, const Lit *l, uint32_t n)
{
    if (!l) return NULL;
    Lin *f = xalloc(n * sizeof *f + 1);
    for (uint32_t i = 0; i < n; i++) f[i] = over_channels(p, lin_lit(l[i]));
    return f;
}

/* ---- loading ---- */

/* What form + load.c's literal is too much by: both are at the idle value. */
static Lin with_load(const Plan *p, Lin form, double idle, Lit wanted)
{
    Lin f = lin_add(form, over_channels(p, lin_lit(wanted)), 1);
    f.k -= (int32_t)idle;
    return f;
}

static void plan_load(const Plan *p, const double *idle, PlanPort *x)
{
    const Port *q = x->port;
    bool any = q->en_any[0] != LIT0 || q->en_any[1] != LIT0;
    x->load_on = over_channels(p, lin_lit(q->load_on));
    x->en_idle = any ? (int)(load_idle(idle, q->en_any[0]) + load_idle(idle, q->en_any[1])) : 1;
    for (uint32_t i = 0; i < q->nen; i++) x->en_idle += (any ? 2 : 1) * ((int)load_idle(idle, q->en[i]) - 1);
    if (q->load_on == LIT0) return;
    for (uint32_t i = 0; i < q->nwaddr; i++) x->waddr[i] = with_load(p, x->waddr[i], load_idle(idle, q->waddr[i]), q->load_addr[i]);
    for (uint32_t i = 0; i < q->width; i++) x->data[i] = with_load(p, x->data[i], load_idle(idle, q->data[i]), q->load_data[i]);
    for (uint32_t i = 0; q->lanes && i < port_lanes(q); i++)
        if (!load_idle(idle, q->lanes[i])) x->lanes[i] = lin_add(x->lanes[i], x->load_on, 1);
}

static void plan_ports(Slots *s)
{
    const double *idle = load_idle_values(s->n);
    Plan *p = s->p;
    for (uint32_t i = 0; i < s->n->ports.n; i++) {
        const Port *q = &s->n->ports.data[i];
        PlanPort x = {.port = q, .home = q->last, .out = xalloc(q->width * sizeof(uint32_t))};
        for (unsigned b = 0; b < q->width; b++) x.out[b] = NONE;
        x.raddr = forms(p, q->raddr, q->nraddr);
        if (q->written) {
            x.waddr = forms(p, q->waddr, q->nwaddr);
            x.en = forms(p, q->en, q->nen);
            x.lanes = forms(p, q->lanes, port_lanes(q));
            x.lane_key = forms(p, q->lane_key, port_lanes(q));
            x.en_any = forms(p, q->en_any, 2);
            x.data = forms(p, q->data, q->data ? q->width : 0);
            x.bump = over_channels(p, lin_lit(q->bump));
            x.late = over_channels(p, lin_lit(q->late));
            x.latch_begin = over_channels(p, lin_lit(q->latch_begin));
            x.latch_set = over_channels(p, lin_lit(q->latch_set));
            plan_load(p, idle, &x);
        }
        if (q->kind == PORT_ROM) {
            x.load_on = over_channels(p, lin_lit(q->load_on));
            x.load_addr = forms(p, q->load_addr, q->nload_addr);
            x.load_data = forms(p, q->load_data, q->width);
        }
        x.rgate = over_channels(p, lin_lit(q->rgate));
        vec_push(&p->ports, x);
    }
    for (Node i = 1; i < s->n->nodes.n; i++) {
        const NodeInfo *x = &s->n->nodes.data[i];
        if (x->time == -2) continue;
        if (x->kind == N_TOKEN) vec_push(&p->embed, ((EmbedChan){s->owner_ch[i], x->port}));
        if (x->kind != N_PORT) continue;
        PlanPort *q = &p->ports.data[x->port];
        q->out[x->portbit] = s->owner_ch[i];
        q->reads = true;
        if (q->port->cnt_bits && x->portbit == q->port->cnt_lo) q->counted = true;
    }
}

Plan *plan_make(Protocol *proto, Net *n, const BuildOptions *o, uint32_t limit)
{
    Plan *p = xalloc(sizeof *p);
    *p = (Plan){.p = proto, .net = n, .opt = o, .layers = (unsigned)n->depth, .limit = limit};
    p->alias = xalloc(n->nodes.n * sizeof *p->alias);
    p->mlp = xalloc(p->layers * sizeof *p->mlp);
    Slots s = {.p = p, .n = n, .last = xalloc(n->nodes.n * sizeof(int)), .owner_ch = xalloc(n->nodes.n * sizeof(uint32_t)),
               .taken = xalloc(n->nodes.n)};
    for (Node i = 0; i < n->nodes.n; i++) s.owner_ch[i] = NONE;
    last_uses(&s);
    place_all(&s);
    plan_ports(&s);
    p->kind_out = forms(p, n->kind_out.data, n->kind_out.n);
    p->word_out = xalloc(n->nwords * sizeof *p->word_out + 1);
    for (uint32_t k = 0; k < n->nwords; k++) p->word_out[k] = forms(p, n->word_out[k], n->word_width[k]);
    return p;
}

const Kind *plan_kind(const Plan *p, uint32_t token, uint32_t *payload)
{
    for (uint32_t k = 0; k < p->p->kinds.n; k++) {
        const Kind *x = &p->p->kinds.data[k];
        if (token - x->base < 1u << x->width) {
            *payload = token - x->base;
            return x;
        }
    }
    return NULL;
}
