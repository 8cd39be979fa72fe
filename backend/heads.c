/* heads.c: ports to DeltaNet heads.
 *
 * A key head addresses dk rows, one-hot: row r's key is silu(HOT (2L - 1)) with L the AND of the address literals, which l2norm makes exactly
 * 1 or 0. Bits stand as HOT or 0 in lanes of value heads, beside pilot lanes P that fix the gated norm's RMS. Rows beyond dk go to
 * further groups of value heads: beta selects the group that is written, z the one that is read.
 * Blocks of value heads by how their key is made: */
#include "chip.h"
#include <math.h>
#include <string.h>

typedef enum {
    KEY_CONST, /* one row, always addressed; beta alone decides. Blocks of this class share key heads */
    KEY_ROWS,  /* address literals */
    KEY_LATCH, /* one row, addressed after a token with latch_begin or latch_set */
    KEY_LATE,  /* one row, addressed if `late` was 1 in the previous pass */
    KEY_LANE   /* one row, addressed if lane_key was 1 some tokens back */
} KeyClass;

typedef struct {
    uint32_t port;
    KeyClass key;
    unsigned lane0, nlanes;        /* write lanes of the port in this block */
    uint32_t group0, groups, heads; /* groups of rows of the port that are here; heads per group */
    bool split;                    /* the port has more than one group: beta and z select them */
    uint32_t first;                /* value head */
    VEC(BitCell) at;                  /* per cell: head in the group, lane */
    VEC(int) bit;                  /* per cell: bit of the row, or -1: the count */
} Block;

typedef VEC(Block) Blocks;

/* Lays the bits of the block's lanes out over heads; every write lane starts a head of its own unless all lanes share one enable. A count has a
 * head to itself: where it counts, beta takes 2^-44 of the row's other lanes too, which decode rounds away at once, but the chunked form may sum before
 * a cell that it writes and clears again, and leave there (numerics.md, section 7). */
static void layout(const Chip *c, Block *b)
{
    const Port *q = c->plan->ports.data[b->port].port;
    unsigned cap = c->dv - pilot_lanes(c->dv), used = cap;
    int32_t head = -1;
    bool own = q->lanes || q->lane_key;
    for (unsigned i = b->lane0 * q->lane; i < q->width && i < (b->lane0 + b->nlanes) * q->lane; i++) {
        bool counted = i >= q->cnt_lo && i < q->cnt_lo + q->cnt_bits;
        if (counted && i != q->cnt_lo) continue;
        if (used == cap || counted || (own && i % q->lane == 0)) head++, used = 0;
        vec_push(&b->at, ((BitCell){head, (int32_t)used++}));
        vec_push(&b->bit, counted ? -1 : (int)i);
        if (counted) used = cap;
    }
    b->heads = (uint32_t)head + 1;
}

static void port_blocks(const Chip *c, uint32_t i, const struct Slice *s, Blocks *out)
{
    const Port *q = c->plan->ports.data[i].port;
    bool addressed = q->rows > 1;
    unsigned lanes = port_lanes(q), step = q->lane_key ? 1 : lanes;
    for (unsigned j = 0; j < lanes; j += step) {
        Block b = {.port = i, .lane0 = j, .nlanes = step, .group0 = s->group0, .groups = s->groups, .split = q->rows > c->dk};
        b.key = addressed ? KEY_ROWS : q->kind == PORT_LATCH ? KEY_LATCH : q->late ? KEY_LATE : q->lane_key && j ? KEY_LANE : KEY_CONST;
        layout(c, &b);
        vec_push(out, b);
    }
}

static Blocks layer_blocks(const Chip *c, unsigned l)
{
    Blocks b = {0};
    for (uint32_t i = 0; i < c->plan->ports.n; i++) {
        const Port *q = c->plan->ports.data[i].port;
        for (uint32_t k = 0; q->kind != PORT_ROM && k < q->nslices; k++)
            if (q->slices[k].layer == (int)l) port_blocks(c, i, &q->slices[k], &b);
    }
    return b;
}

/* Gives every block its value heads, for r value heads per key head; returns the key heads used. */
static uint32_t assign(Blocks *b, uint32_t r)
{
    uint32_t key = 0, shared = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        Block *x = &b->data[i];
        if (x->key == KEY_CONST) continue;
        x->first = key * r;
        key += (x->groups * x->heads + r - 1) / r;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        Block *x = &b->data[i];
        if (x->key != KEY_CONST) continue;
        x->first = key * r + shared;
        shared += x->heads;
    }
    return key + (shared + r - 1) / r;
}

void heads_size(Chip *c)
{
    const Target *t = c->target;
    c->nk = t->key_heads, c->nv = t->value_heads;
    uint64_t best = UINT64_MAX;
    for (uint32_t r = t->native ? 1 : c->nv / c->nk; t->native ? r <= 4096 : r == c->nv / c->nk; r *= 2) {
        uint32_t most = 1, worst = 0;
        for (unsigned l = 0; l < c->plan->layers; l++) {
            Blocks b = layer_blocks(c, l);
            uint32_t k = assign(&b, r);
            if (k > most) most = k, worst = l;
        }
        if (!t->native) {
            if (most > c->nk) c->error = xfmt("layer %u needs %u key heads of %u value heads, the target %s has %u", worst, most, r, t->name, c->nk);
            return;
        }
        uint64_t cost = (uint64_t)most * (2 * c->dk + r * c->dv); /* convolved channels */
        if (cost < best) best = cost, c->nk = most, c->nv = most * r;
    }
}

/* ---- weights of one block ---- */

typedef struct {
    Chip *c;
    Weights *qkv, *conv, *z, *b, *out;
    unsigned r;
} Heads;

static void put_conv(Heads *h, uint64_t channel, int tap) { chip_put(h->c, h->conv, channel, (uint64_t)(3 - tap), 1); }
static uint64_t q_row(const Heads *h, uint32_t key, uint32_t row) { return (uint64_t)key * h->c->dk + row; }
static uint64_t k_row(const Heads *h, uint32_t key, uint32_t row) { return ((uint64_t)h->c->nk + key) * h->c->dk + row; }
static uint64_t v_row(const Heads *h, uint32_t head, uint32_t lane)
{
    return 2ull * h->c->nk * h->c->dk + (uint64_t)head * h->c->dv + lane;
}

/* 2L - 1, L = number of address bits that match `value`, less all but one: 1 if all match, else <= 0. */
static Lin match_form(const Lin *bits, unsigned from, unsigned to, uint32_t value)
{
    Lin l = lin_const(1);
    for (unsigned i = from; i < to; i++) {
        bool one = value >> (i - from) & 1;
        l = lin_add(l, bits[i], one ? 1 : -1);
        l.k -= one;
    }
    return l;
}

static Lin decided(Lin l)
{
    Lin d = lin_add(lin_const(-1), l, 2);
    return d;
}

static void emit_keys(Heads *h, const Block *b, uint32_t key)
{
    Chip *c = h->c;
    const PlanPort *p = &c->plan->ports.data[b->port];
    const Port *q = p->port;
    unsigned low = clog2(c->dk);
    uint32_t left = q->rows - b->group0 * c->dk, rows = left < c->dk ? left : c->dk;
    bool two_hot = q->cnt_bits && (clog2(c->dk) & 1);
    for (uint32_t r = 0; p->reads && r < rows; r++) {
        unsigned n = q->nraddr < low ? q->nraddr : low;
        chip_form(c, h->qkv, q_row(h, key, r), b->key == KEY_ROWS ? decided(match_form(p->raddr, 0, n, r)) : lin_const(1), HOT);
        put_conv(h, q_row(h, key, r), 0);
    }
    if (p->reads && two_hot) { /* one never-written row beside: the query scale becomes 1/16 */
        chip_form(c, h->qkv, q_row(h, key, c->dk - 1), lin_const(1), HOT);
        put_conv(h, q_row(h, key, c->dk - 1), 0);
    }
    for (uint32_t r = 0; q->written && r < rows; r++) {
        if (q->has_hard && r == q->hard_row && !b->split) continue;
        unsigned n = q->nwaddr < low ? q->nwaddr : low;
        Lin form = lin_const(1);
        int tap = 0;
        if (b->key == KEY_ROWS) form = decided(match_form(p->waddr, 0, n, r)), tap = q->waddr_tap;
        if (b->key == KEY_LATCH) { /* HOT times -1, 1, 2 or 4: powers of two when on */
            form = lin_add(lin_add(lin_const(-1), p->latch_begin, 2), p->latch_set, 3);
            tap = 1;
        }
        if (b->key == KEY_LATE) form = decided(p->late), tap = 1;
        if (b->key == KEY_LANE) form = decided(p->lane_key[b->lane0]), tap = q->data_tap[b->lane0 * q->lane];
        chip_form(c, h->qkv, k_row(h, key, r), form, HOT);
        put_conv(h, k_row(h, key, r), tap);
    }
}

/* What lifts beta's logit from -HOT to that of the accumulator's 2^-44: in bf16 to -30.5, whose sigmoid rounds to 2^-44; in float32 as near
 * to -ln(2^44 - 1) as the sum allows. */
static double acc_lift(const Chip *c) { return c->bf16 ? HOT - 30.5 : (double)(float)(HOT - LOG2_ACC * 0.69314718055994530942); }

/* The value whose product with that beta is HOT: 2^44 HOT in bf16; in float32 the neighbour of HOT / beta for which the rounded product
 * is exact. Another exp may give a beta some ulps away; the count then drifts by as much of itself, which its reader allows for. */
static double acc_value(const Chip *c)
{
    if (c->bf16) return ldexp(HOT, LOG2_ACC);
    float beta = 1.0f / (1.0f + expf((float)(HOT - acc_lift(c)))), v = HOT / beta;
    if (beta * v < HOT) v = nextafterf(v, INFINITY);
    if (beta * v > HOT) v = nextafterf(v, 0);
    return v;
}

/* P sqrt(dv / pilots) and the gain divide out: a cell of HOT comes out as 1 */
double read_gate(unsigned dv) { return ldexp(1, LOG2_PILOT) / (HOT * NORM_GAIN * sqrt((double)dv / pilot_lanes(dv))); }

static void emit_beta(Heads *h, const Block *b, uint32_t head, uint32_t group, int bit)
{
    Chip *c = h->c;
    const PlanPort *p = &c->plan->ports.data[b->port];
    const Port *q = p->port;
    unsigned low = clog2(c->dk), lane = bit >= 0 ? (unsigned)bit / q->lane : 0;
    bool any = q->en_any[0] != LIT0 || q->en_any[1] != LIT0;
    int w = any ? 2 : 1; /* every literal of the AND counts w, the pair that may sum to 2 counts 1 each */
    Lin l = lin_const(any ? 0 : 1);
    for (uint32_t i = 0; i < q->nen; i++) l = lin_add(l, p->en[i], w), l.k -= w;
    if (any) l = lin_add(lin_add(l, p->en_any[0], 1), p->en_any[1], 1);
    if (p->load_on.n) l = lin_add(l, p->load_on, 1 - p->en_idle);
    if (q->lanes) l = lin_add(l, p->lanes[lane], w), l.k -= w;
    if (b->split && q->nwaddr > low) {
        Lin g = match_form(p->waddr, low, q->nwaddr, group);
        l = lin_add(l, g, w);
        l.k -= w;
    }
    l = decided(l);
    chip_form(c, h->b, head, l, HOT);
    if (bit < 0) chip_form(c, h->b, head, p->bump, acc_lift(c));
}

static void emit_cell(Heads *h, const Block *b, uint32_t head, uint32_t group, uint32_t k)
{
    Chip *c = h->c;
    const PlanPort *p = &c->plan->ports.data[b->port];
    const Port *q = p->port;
    uint32_t lane = (uint32_t)b->at.data[k].lane;
    int bit = b->bit.data[k];
    if (q->written) {
        uint64_t row = v_row(h, head, lane);
        if (bit >= 0) {
            chip_form(c, h->qkv, row, decided(p->data[bit]), HOT);
            put_conv(h, row, q->data_tap[bit]);
        } else {
            for (unsigned i = 0; i < q->cnt_bits; i++) chip_form(c, h->qkv, row, p->data[q->cnt_lo + i], ldexp(HOT, (int)i));
            chip_form(c, h->qkv, row, p->bump, acc_value(c));
            put_conv(h, row, 0);
        }
    }
    uint32_t ch = p->out[bit >= 0 ? (unsigned)bit : q->cnt_lo];
    if (ch == UINT32_MAX) return;
    double zval = read_gate(c->dv);
    unsigned low = clog2(c->dk);
    Lin sel = b->split ? match_form(p->raddr, low, q->nraddr, group) : lin_const(1);
    if (p->rgate.n) sel = lin_add(sel, p->rgate, 1), sel.k -= 1;
    chip_form(c, h->z, (uint64_t)head * c->dv + lane, sel.n ? decided(sel) : sel, zval);
    chip_put(c, h->out, ch, (uint64_t)head * c->dv + lane, 1);
}

static void emit_block(Heads *h, const Block *b)
{
    Chip *c = h->c;
    const Port *q = c->plan->ports.data[b->port].port;
    unsigned np = pilot_lanes(c->dv);
    if (b->key != KEY_CONST)
        for (uint32_t k = 0; k < (b->groups * b->heads + h->r - 1) / h->r; k++) emit_keys(h, b, b->first / h->r + k);
    for (uint32_t g = 0; g < b->groups; g++) {
        int32_t done = -1;
        for (uint32_t k = 0; k < b->at.n; k++) {
            uint32_t head = b->first + g * b->heads + (uint32_t)b->at.data[k].head;
            emit_cell(h, b, head, b->group0 + g, k);
            if (b->at.data[k].head == done) continue;
            done = b->at.data[k].head;
            if (!q->written) { /* without it beta is 1/2, and every token would halve the row */
                chip_form(c, h->b, head, lin_const(-1), HOT);
                continue;
            }
            emit_beta(h, b, head, b->group0 + g, b->bit.data[k]);
            for (unsigned i = 0; i < np; i++) {
                uint64_t row = v_row(h, head, c->dv - 1 - i);
                chip_form(c, h->qkv, row, lin_const(1), ldexp(1, LOG2_PILOT));
                put_conv(h, row, 0);
            }
        }
    }
}

/* ---- state map ---- */

static void map_block(Chip *c, const Block *b, CopyPiece *p)
{
    unsigned np = pilot_lanes(c->dv);
    int32_t done = -1, off = (int32_t)b->first - (int32_t)p->head0;
    for (uint32_t k = 0; k < b->at.n; k++) {
        BitCell at = {b->at.data[k].head + off, b->at.data[k].lane};
        if (b->bit.data[k] < 0) p->count = at;
        else p->bits[b->bit.data[k]] = at;
        if (b->at.data[k].head == done) continue;
        done = b->at.data[k].head;
        for (unsigned i = 0; i < np; i++)
            vec_push(&p->pilots, ((PilotLane){at.head, (int32_t)(c->dv - 1 - i), ldexp(1, LOG2_PILOT)}));
    }
}

static void map_layer(Chip *c, unsigned l, const Blocks *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const Block *x = &b->data[i];
        const Port *q = c->plan->ports.data[x->port].port;
        if (q->kind != PORT_STATE) continue;
        bool first = i == 0 || b->data[i - 1].port != x->port || b->data[i - 1].group0 != x->group0;
        if (first) {
            uint32_t row0 = x->group0 * c->dk, rows = x->groups * c->dk;
            CopyPiece p = {.port = x->port, .layer = l, .row0 = row0, .nrows = rows < q->rows - row0 ? rows : q->rows - row0, .group_rows = c->dk, .group_heads = x->heads, .head0 = x->first,
                       .bits = xalloc(q->width * sizeof(BitCell)), .count = {-1, -1}};
            for (unsigned k = 0; k < q->width; k++) p.bits[k] = (BitCell){-1, -1};
            vec_push(&c->pieces, p);
        }
        map_block(c, x, &c->pieces.data[c->pieces.n - 1]);
    }
}

void heads_emit(Chip *c, unsigned l)
{
    uint64_t conv = 2ull * c->nk * c->dk + (uint64_t)c->nv * c->dv;
    const char *pre = xfmt("model.layers.%u.", l), *la = xfmt("%slinear_attn.", pre);
    chip_tensor(c, xfmt("%sinput_layernorm.weight", pre), 1, c->hidden, 0, 0, 0);
    chip_tensor(c, xfmt("%sin_proj_qkv.weight", la), 2, conv, c->hidden, 0, 0);
    chip_tensor(c, xfmt("%sin_proj_z.weight", la), 2, (uint64_t)c->nv * c->dv, c->hidden, 0, 0);
    chip_tensor(c, xfmt("%sin_proj_b.weight", la), 2, c->nv, c->hidden, 0, 0);
    chip_tensor(c, xfmt("%sin_proj_a.weight", la), 2, c->nv, c->hidden, 0, 0);
    chip_tensor(c, xfmt("%sconv1d.weight", la), 3, conv, 1, 4, 0);
    chip_tensor(c, xfmt("%sA_log", la), 1, c->nv, 0, 0, -20);    /* with a = 0: g = -exp(-20) softplus(-100) = -0, decay 1 */
    chip_tensor(c, xfmt("%sdt_bias", la), 1, c->nv, 0, 0, -100); /* in every dtype; -104 and below also in any formula */
    chip_tensor(c, xfmt("%snorm.weight", la), 1, c->dv, 0, 0, NORM_GAIN);
    Weights *out = chip_tensor(c, xfmt("%sout_proj.weight", la), 2, c->hidden, (uint64_t)c->nv * c->dv, 0, 0);
    Heads h = {.c = c, .out = out, .qkv = out - 8, .z = out - 7, .b = out - 6, .conv = out - 4, .r = c->nv / c->nk};
    Blocks b = layer_blocks(c, l);
    uint32_t used = assign(&b, h.r), shared = used;
    for (uint32_t i = 0; i < b.n; i++)
        if (b.data[i].key == KEY_CONST && b.data[i].first / h.r < shared) shared = b.data[i].first / h.r;
    for (uint32_t i = 0; i < b.n; i++) emit_block(&h, &b.data[i]);
    for (uint32_t k = shared; k < used; k++) { /* key heads of one constant row; a count's second query row does no harm to the others */
        bool two_hot = clog2(c->dk) & 1;
        for (uint32_t row = 0; row < c->dk; row += two_hot ? c->dk - 1 : c->dk) {
            chip_form(c, h.qkv, q_row(&h, k, row), lin_const(1), HOT);
            put_conv(&h, q_row(&h, k, row), 0);
        }
        chip_form(c, h.qkv, k_row(&h, k, 0), lin_const(1), HOT);
        put_conv(&h, k_row(&h, k, 0), 0);
    }
    map_layer(c, l, &b);
}
