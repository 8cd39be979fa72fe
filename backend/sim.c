/* sim.c: the plan in exact integers: the second oracle. It knows channels, units and ports, but no weights, norms or rounding.
 * One call is one pass: embedding, then per layer its ports (write, then read) and its units. */
#include "plan.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t *row;      /* the port's rows */
    int64_t *hist;      /* TAPS rows of the values that a conv tap may see: address bits, lane keys, data bits, latch flags */
    uint32_t nhist;
    bool full;          /* the count is cnt_max = 2^cnt_bits: the rows' value includes it */
} PortState;

struct PlanSim {
    const Plan *p;
    double *delta;      /* what the block at work adds */
    double *h;          /* channels; fractions appear only inside a unit's halves and cancel */
    PortState *port;
    uint64_t now;       /* tokens so far */
    PlanProbe *probe;
    void *probe_ctx;
};

static int64_t form_value(const PlanSim *s, Lin f)
{
    double v = f.k;
    for (uint32_t i = 0; i < f.n; i++) v += f.t[i].coef * s->h[f.t[i].node];
    return (int64_t)v;
}

static bool must_be_bit(int64_t v)
{
    if (v != 0 && v != 1) die("a bit of the plan is %lld", (long long)v);
    return v;
}

static bool form_bit(const PlanSim *s, Lin f) { return must_be_bit(form_value(s, f)); }

static uint64_t initial(const State *st, uint32_t row, const Image *im)
{
    uint64_t v = 0;
    if (st->has_hard && row == st->hard_row) return 0; /* a row without a place: what is not 0 is made by logic (lower.c) */
    switch (st->init) {
    case INIT_ZERO: break;
    case INIT_ROWS: v = row < st->nrow_init ? st->row_init[row] : 0; break;
    case INIT_ENTRY: v = im ? im->entry >> st->init_shift : 0; break;
    case INIT_SYMBOL: if (!im || !im->symbol(im, st->symbol, &v)) v = st->nrow_init ? st->row_init[0] : 0; v >>= st->init_shift; break;
    case INIT_IMAGE: {
        uint8_t b[8] = {0};
        unsigned n = st->width / 8;
        if (im) im->read(im, st->base + (uint64_t)row * n, b, n);
        for (unsigned i = 0; i < n; i++) v |= (uint64_t)b[i] << 8 * i;
    }
    }
    return v & mask64(st->width);
}

PlanSim *plansim_new(const Plan *p, const Image *image)
{
    PlanSim *s = xalloc(sizeof *s);
    s->p = p;
    s->h = xalloc((p->nchannels + 1) * sizeof *s->h);
    s->delta = xalloc((p->nchannels + 1) * sizeof *s->delta);
    s->port = xalloc(p->ports.n * sizeof *s->port + 1);
    for (uint32_t i = 0; i < p->ports.n; i++) {
        const Port *q = p->ports.data[i].port;
        PortState *x = &s->port[i];
        x->row = xalloc(q->rows * sizeof *x->row);
        x->nhist = q->nwaddr + q->width + (q->lane_key ? port_lanes(q) : 0) + 3;
        x->hist = xalloc(TAPS * x->nhist * sizeof *x->hist);
        for (uint32_t r = 0; (q->kind == PORT_STATE || q->kind == PORT_ROM) && r < q->rows; r++) x->row[r] = initial(&p->net->c->states.data[q->state], r, image);
    }
    return s;
}

/* ---- ports ---- */

static int64_t tap(const PlanSim *s, const PortState *x, uint32_t slot, int back)
{
    if (s->now < (uint64_t)back) return 0;
    return x->hist[((s->now - (uint64_t)back) % TAPS) * x->nhist + slot];
}

static void remember(PlanSim *s, const PlanPort *p, PortState *x)
{
    const Port *q = p->port;
    int64_t *h = x->hist + (s->now % TAPS) * x->nhist;
    uint32_t k = 0;
    for (uint32_t i = 0; i < q->nwaddr; i++) h[k++] = form_value(s, p->waddr[i]); /* no bits while others are loaded */
    for (uint32_t i = 0; i < q->width; i++) h[k++] = form_value(s, p->data[i]);
    for (uint32_t i = 0; q->lane_key && i < port_lanes(q); i++) h[k++] = form_bit(s, p->lane_key[i]);
    h[k++] = form_bit(s, p->late);
    h[k++] = form_bit(s, p->latch_begin);
    h[k] = form_bit(s, p->latch_set);
}

static bool enabled(const PlanSim *s, const PlanPort *p, const PortState *x)
{
    const Port *q = p->port;
    if (form_bit(s, p->load_on)) return true;
    for (uint32_t i = 0; i < q->nen; i++)
        if (!form_bit(s, p->en[i])) return false;
    if (q->en_any[0] != LIT0 || q->en_any[1] != LIT0)
        if (!form_bit(s, p->en_any[0]) && !form_bit(s, p->en_any[1])) return false;
    if (q->late) return tap(s, x, x->nhist - 3, 1);
    if (q->kind == PORT_LATCH) return tap(s, x, x->nhist - 2, 1) || tap(s, x, x->nhist - 1, 1);
    return true;
}

static void write_row(PlanSim *s, const PlanPort *p, PortState *x)
{
    const Port *q = p->port;
    uint32_t row = 0, lanes0 = q->nwaddr + q->width;
    for (uint32_t i = 0; i < q->nwaddr; i++) row |= (uint32_t)must_be_bit(tap(s, x, i, q->waddr_tap)) << i;
    if (row >= q->rows || (q->has_hard && row == q->hard_row)) return;
    x->full = false;
    for (unsigned i = 0; i < q->width; i++) {
        unsigned lane = i / q->lane;
        if (q->lanes && !form_bit(s, p->lanes[lane])) continue;
        if (q->lane_key && !tap(s, x, lanes0 + lane, q->data_tap[i])) continue;
        uint64_t bit = must_be_bit(tap(s, x, q->nwaddr + i, q->data_tap[i]));
        x->row[row] = (x->row[row] & ~(1ull << i)) | bit << i;
    }
}

static void bump(PlanSim *s, const PlanPort *p, PortState *x)
{
    const Port *q = p->port;
    if (!q->cnt_bits || !form_bit(s, p->bump)) return;
    uint64_t m = mask64(q->cnt_bits) << q->cnt_lo, n = (x->row[0] & m) + (1ull << q->cnt_lo);
    if (x->full || (n & ~m && n != (uint64_t)q->cnt_max << q->cnt_lo)) die("the count of %s overflows", q->name);
    x->full = n & ~m;
    x->row[0] = ((x->row[0] & ~m) + n) & mask64(q->width);
}

static void read_row(const PlanSim *s, const PlanPort *p, const PortState *x, double *delta)
{
    const Port *q = p->port;
    uint32_t row = 0;
    if (!form_bit(s, p->rgate)) return;
    for (uint32_t i = 0; i < q->nraddr; i++) row |= (uint32_t)form_bit(s, p->raddr[i]) << i;
    uint64_t v = row < q->rows ? x->row[row] : 0;
    if (x->full) v -= (uint64_t)q->cnt_max << q->cnt_lo;
    for (unsigned i = 0; i < q->width; i++) {
        if (p->out[i] == UINT32_MAX) continue;
        bool counted = p->counted && i == q->cnt_lo;
        delta[p->out[i]] += counted ? (double)(x->full ? (uint64_t)q->cnt_max : v >> i & mask64(q->cnt_bits)) : (double)(v >> i & 1);
    }
}

static void add_all(PlanSim *s, const double *delta)
{
    for (uint32_t k = 0; k < s->p->nchannels; k++) s->h[k] += delta[k];
}

/* All ports of a layer see the stream as it was before the block; each is written, then read. */
static void run_ports(PlanSim *s, int layer)
{
    memset(s->delta, 0, s->p->nchannels * sizeof *s->delta);
    for (uint32_t i = 0; i < s->p->ports.n; i++) {
        const PlanPort *p = &s->p->ports.data[i];
        PortState *x = &s->port[i];
        if (p->home != layer) continue;
        if (p->port->written) {
            remember(s, p, x);
            if (enabled(s, p, x)) write_row(s, p, x);
            bump(s, p, x);
        }
        if (p->reads) read_row(s, p, x, s->delta);
    }
    add_all(s, s->delta);
}

static void run_units(PlanSim *s, const Mlp *m)
{
    double *delta = s->delta;
    memset(delta, 0, s->p->nchannels * sizeof *delta);
    for (uint32_t i = 0; i < m->units.n; i++) {
        const Unit *u = &m->units.data[i];
        int64_t g = form_value(s, u->gate);
        if (g > u->gmax) die("a gate of line %u is %lld, above its bound %d", u->span.line, (long long)g, u->gmax);
        if (g <= 0) continue;
        double v = (double)g * (double)form_value(s, u->up);
        for (uint32_t k = 0; k < u->out.n; k++) delta[u->out.data[k].ch] += u->out.data[k].coef * v;
    }
    add_all(s, delta);
}

/* ---- tokens ---- */

static uint32_t decide(const PlanSim *s)
{
    const Protocol *p = s->p->p;
    uint32_t best = 0, token = 0;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        if (x->score <= best || !form_bit(s, s->p->kind_out[k])) continue;
        best = x->score;
        token = x->base;
        for (unsigned i = 0; i < x->width; i++) token += (uint32_t)form_bit(s, s->p->word_out[x->word][i]) << i;
    }
    return token;
}

uint32_t plansim_step(PlanSim *s, uint32_t token)
{
    const Plan *p = s->p;
    uint32_t payload;
    const Kind *kind = plan_kind(p, token, &payload);
    if (!kind) die("no token %u", token);
    uint32_t k = (uint32_t)(kind - p->p->kinds.data);
    memset(s->h, 0, p->nchannels * sizeof *s->h);
    for (uint32_t i = 0; i < p->embed.n; i++) {
        int b = p->p->tok.data[p->embed.data[i].tok].by_kind.data[k];
        s->h[p->embed.data[i].ch] = b == TOK_ONE ? 1 : b == TOK_ZERO ? 0 : payload >> b & 1;
    }
    for (uint32_t i = 0; i < p->start.n; i++) s->h[p->start.data[i].ch] = p->start.data[i].value;
    if (s->probe) s->probe(s->probe_ctx, -1, "embed", s->h);
    for (unsigned l = 0; l < p->layers; l++) {
        run_ports(s, (int)l);
        if (s->probe) s->probe(s->probe_ctx, (int)l, "mixer", s->h);
        run_units(s, &p->mlp[l]);
        if (s->probe) s->probe(s->probe_ctx, (int)l, "mlp", s->h);
    }
    s->now++;
    return decide(s);
}

void plansim_probe(PlanSim *s, PlanProbe *probe, void *ctx)
{
    s->probe = probe;
    s->probe_ctx = ctx;
}

static bool is_copy(const PlanSim *s, uint32_t port, uint32_t state)
{
    const Port *q = s->p->ports.data[port].port;
    return (q->kind == PORT_STATE || q->kind == PORT_ROM) && q->state == state;
}

uint64_t plansim_get(const PlanSim *s, uint32_t state, uint32_t row)
{
    for (uint32_t i = 0; i < s->p->ports.n; i++)
        if (is_copy(s, i, state)) return s->port[i].row[row];
    die("state %u has no copy", state);
}

void plansim_clear(PlanSim *s)
{
    s->now = 0;
    for (uint32_t i = 0; i < s->p->ports.n; i++) {
        PortKind kind = s->p->ports.data[i].port->kind;
        s->port[i].full = false;
        memset(s->port[i].hist, 0, TAPS * s->port[i].nhist * sizeof *s->port[i].hist);
        if (kind == PORT_STAGE || kind == PORT_LATCH) memset(s->port[i].row, 0, s->p->ports.data[i].port->rows * sizeof *s->port[i].row);
    }
}

static bool is_hard(const State *st, uint32_t row) { return st->has_hard && row == st->hard_row; }

void plansim_set(PlanSim *s, uint32_t state, uint32_t row, uint64_t value)
{
    if (is_hard(&s->p->net->c->states.data[state], row)) return;
    for (uint32_t i = 0; i < s->p->ports.n; i++)
        if (is_copy(s, i, state)) s->port[i].row[row] = value, s->port[i].full = false;
}

bool plansim_holds(const PlanSim *s, uint32_t state, uint32_t row, uint64_t value)
{
    if (is_hard(&s->p->net->c->states.data[state], row)) return true;
    for (uint32_t i = 0; i < s->p->ports.n; i++)
        if (is_copy(s, i, state) && s->port[i].row[row] != value) return false;
    return true;
}
