/* slice_past.c: what convolutions look back to: channels of earlier tokens. One that is always a bit is a plane for each token back. Another is a number in two's
 * complement, PAST_BITS planes whatever its assumed range is: where that is widened, what was kept before still says the same. The planes beyond the
 * first are made when the channel turns out to be no bit; nobody has written to them before, and 0 is what they stand for then. */
#include "batch.h"
#include "slice_priv.h"

uint32_t past_numbers_from = UINT32_MAX;

static Past *past_of(Slice *s, uint32_t layer, uint32_t channel)
{
    for (uint32_t i = 0; i < s->past[layer].n; i++)
        if (s->past[layer].data[i].channel == channel) return &s->past[layer].data[i];
    return NULL;
}

void past_note(Slice *s, uint32_t layer, const bool *past)
{
    for (uint32_t tap = 1; tap < s->m->geo.taps && tap < MAX_TAPS; tap++)
        for (uint32_t c = 0; c < s->m->geo.hidden; c++) {
            if (!past[(size_t)tap * s->m->geo.hidden + c]) continue;
            Past *p = past_of(s, layer, c);
            if (!p) p = &s->past[layer].data[vec_push(&s->past[layer], ((Past){.channel = c, .bits = 1}))];
            for (; p->taps < tap; p->past[++p->taps][0] = slice_new_slot(s)) {}
        }
}

bool past_reach(Slice *s, Past *p, int64_t lo, int64_t hi)
{
    if (lo < p->lo) p->lo = (int32_t)lo;
    if (hi > p->hi) p->hi = (int32_t)hi;
    for (; (p->lo < 0 || p->hi > 1) && p->bits < PAST_BITS; p->bits++)
        for (uint32_t tap = 1; tap <= p->taps; tap++) p->past[tap][p->bits] = slice_kept_slot(s);
    return p->lo >= -(1 << (PAST_BITS - 1)) && p->hi < 1 << (PAST_BITS - 1);
}

/* ---- in a block ---- */
/* The number in the tokens before: what it was assumed to be until now. */
static void past_int(Block *k, const Past *p, uint32_t tap, Int *out)
{
    uint32_t above = bits_width((uint64_t)p->hi), below = p->lo < 0 ? bits_width((uint64_t)(-1 - (int64_t)p->lo)) : 0;
    *out = (Int){.hi = p->hi, .n = above > below ? above : below};
    for (uint32_t b = 0; b < out->n; b++) out->plane[b] = bits_leaf(k->g, p->past[tap][b]);
    if (p->lo >= 0) return;
    out->lo = -(1ll << out->n);
    out->plane[out->n] = bits_not(bits_leaf(k->g, p->past[tap][out->n])); /* the sign */
    out->n++;
}

Int **slice_past(Block *k, uint32_t tap)
{
    Slice *s = k->s;
    uint32_t n = s->m->geo.hidden;
    if (!k->past) k->past = pool_array(k->pool, MAX_TAPS, sizeof *k->past * n);
    Int **x = k->past + (size_t)tap * n;
    for (uint32_t i = 0; i < s->past[k->layer].n; i++) {
        const Past *p = &s->past[k->layer].data[i];
        if (p->taps < tap || x[p->channel] || p->lo == p->hi) continue;
        past_int(k, p, tap, x[p->channel] = pool_alloc(k->pool, sizeof **x));
    }
    return x;
}

Ref slice_begun(Block *k, uint32_t tap) { return bits_leaf(k->g, k->s->begun[tap]); }

bool past_begin(Block *k)
{
    for (uint32_t i = 0; i < k->s->past[k->layer].n; i++) {
        Past *p = &k->s->past[k->layer].data[i];
        const Int *x = k->x[p->channel];
        if (k->s->compilations >= past_numbers_from) past_reach(k->s, p, -1, 1);
        if (x && !past_reach(k->s, p, x->lo, x->hi)) k->why = "a number of an earlier token is too wide";
    }
    return !k->why;
}

void past_end(Block *k)
{
    for (uint32_t i = 0; i < k->s->past[k->layer].n; i++) {
        Past *p = &k->s->past[k->layer].data[i];
        const Int *x = channel_int(k->x, p->channel);
        Ref plane[PAST_BITS] = {FALSE_REF};
        Term t[MAX_PLANES];
        for (uint32_t b = 0; b < x->n; b++) t[b] = (Term){x->plane[b], 1ll << b};
        if (p->bits > 1) bits_add(k->g, t, x->n, x->lo, p->bits, plane);
        else if (x->n) plane[0] = x->plane[0];
        else plane[0] = x->lo ? TRUE_REF : FALSE_REF;
        p->made = p->bits > 1 || plane[0] == TRUE_REF;
        for (uint32_t b = 0; b < p->bits; b++) p->now[b] = slice_goal_slot(k, plane[b]);
    }
}

/* ---- in a pass ---- */
static uint64_t word_of(const Slice *s, uint16_t slot, uint32_t w) { return slot == NO_SLOT ? 0 : s->plane[slot].w[w]; }

/* Lane i's past is lane i - tap, or one of the block before. */
static void shift(Slice *s, const Past *p, uint32_t bit, uint32_t tap)
{
    uint64_t before = p->carry[bit];
    for (uint32_t w = 0; w < PLANE_WORDS; w++) {
        uint64_t x = word_of(s, p->now[bit], w);
        s->plane[p->past[tap][bit]].w[w] = x << tap | before >> (64 - tap);
        before = x;
    }
}

static void keep(Slice *s, Past *p, uint32_t bit)
{
    if (s->shared) {
        p->carry[bit] = word_of(s, p->now[bit], PLANE_WORDS - 1);
        return;
    }
    for (uint32_t tap = p->taps; tap > 1; tap--) s->plane[p->past[tap][bit]] = s->plane[p->past[tap - 1][bit]];
    if (p->now[bit] == NO_SLOT) memset(&s->plane[p->past[1][bit]], 0, sizeof(Plane));
    else s->plane[p->past[1][bit]] = s->plane[p->now[bit]];
}

bool past_made(const Slice *s, uint32_t layer)
{
    for (uint32_t i = 0; i < s->past[layer].n; i++)
        if (s->past[layer].data[i].made) return true;
    return false;
}

void past_shift(Slice *s, uint32_t layer)
{
    for (uint32_t i = 0; i < s->past[layer].n; i++) {
        const Past *p = &s->past[layer].data[i];
        for (uint32_t tap = 1; tap <= p->taps; tap++)
            for (uint32_t b = 0; b < p->bits; b++) shift(s, p, b, tap);
    }
}

void past_keep(Slice *s, uint32_t layer)
{
    for (uint32_t i = 0; i < s->past[layer].n; i++)
        for (uint32_t b = 0; b < s->past[layer].data[i].bits; b++) keep(s, &s->past[layer].data[i], b);
}

/* ---- of one lane ---- */
int32_t past_get(const Slice *s, const Past *p, uint32_t tap, uint32_t lane)
{
    int32_t v = 0;
    for (uint32_t b = 0; b < p->bits; b++) v |= (int32_t)(s->plane[p->past[tap][b]].w[lane >> 6] >> (lane & 63) & 1) << b;
    return p->bits > 1 && v >> (PAST_BITS - 1) ? v - (1 << PAST_BITS) : v;
}

void past_put(Slice *s, const Past *p, uint32_t tap, uint32_t lane, int32_t v)
{
    uint64_t bit = 1ull << (lane & 63);
    for (uint32_t b = 0; b < p->bits; b++) {
        uint64_t *w = &s->plane[p->past[tap][b]].w[lane >> 6];
        *w = v >> b & 1 ? *w | bit : *w & ~bit;
    }
}
