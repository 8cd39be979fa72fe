/* lut.c: MLP units with few inputs, as look-up tables filled on demand.
 *
 * Units whose gate and up forms use at most MAX_INPUTS channels are gathered into tables with common inputs: the digits of an
 * adder, the bits of a selector. What all units of a table add to the stream is a function of its inputs, so it is worked
 * out once for each combination that occurs and remembered. A channel is one bit of the key; one that has been seen to be
 * neither 0 nor 1 takes four (an integer in -8 .. 7), or twelve once it has been outside that. Anything else, and keys of
 * more than 64 bits, are computed every time. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_INPUTS = 16, FREE_UNION = 10, MAX_ENTRIES = 8192, NARROW = 4, WIDE = 12, FREE = 0xffffffff };

typedef struct {
    uint32_t word, bits;
    uint64_t mask;
} Segment64;
/* What is added for one key: entries [first, first + n). */
typedef struct {
    uint64_t key, touched;
    uint32_t first, n; /* n FREE: nothing is remembered here */
} Slot;
typedef struct Lut {
    uint32_t nchannels, channel[MAX_INPUTS];
    uint32_t nsegments, ntame;
    Segment64 segment[MAX_INPUTS]; /* channels that are bits */
    Segment64 tame[MAX_INPUTS];    /* channels that take NARROW bits must not be wild */
    uint32_t nnarrow, narrow[MAX_INPUTS], nwide, wide[MAX_INPUTS];
    bool hopeless; /* the key has no room */
    VEC(uint32_t) unit;
    uint32_t n, cap; /* open addressing */
    Slot *slot;
    Entries entries; /* of this table alone, so that it can be emptied */
} Lut;
struct Luts {
    Mlp *mlp;
    VEC(Lut *) lut;
    Pool *pool;
};

/* ---- building ---- */
static void add_channel(uint32_t *set, uint32_t *n, uint32_t c)
{
    for (uint32_t i = 0; i < *n && i <= MAX_INPUTS; i++)
        if (set[i] == c) return;
    if (*n <= MAX_INPUTS) set[(*n)++] = c;
}

/* The channels of both forms; more than MAX_INPUTS count as MAX_INPUTS + 1. */
static uint32_t inputs(const Forms *gate, uint32_t g, const Forms *up, uint32_t u, uint32_t *set)
{
    uint32_t n = 0;
    for (uint32_t k = gate->start[g]; k < gate->start[g + 1]; k++) add_channel(set, &n, gate->e.data[k].at);
    for (uint32_t k = up->start[u]; k < up->start[u + 1]; k++) add_channel(set, &n, up->e.data[k].at);
    return n;
}

bool lut_fits(const Forms *gate, uint32_t g, const Forms *up, uint32_t u)
{
    uint32_t set[MAX_INPUTS + 1], n = inputs(gate, g, up, u, set);
    return n > 0 && n <= MAX_INPUTS;
}

static uint32_t missing(const Lut *l, const uint32_t *set, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < l->nchannels; k++) found |= l->channel[k] == set[i];
        count += !found;
    }
    return count;
}

/* The table that grows least; unrelated inputs share one only while it is small, since their combinations multiply. */
static Lut *best_lut(Luts *t, const uint32_t *set, uint32_t n)
{
    Lut *best = NULL;
    uint32_t least = MAX_INPUTS + 1;
    for (uint32_t i = 0; i < t->lut.n; i++) {
        Lut *l = t->lut.data[i];
        uint32_t more = missing(l, set, n), all = l->nchannels + more;
        if (all > MAX_INPUTS || (all > FREE_UNION && 2 * more > n) || more >= least) continue;
        best = l;
        least = more;
    }
    return best;
}

Luts *luts_make(Mlp *mlp, Pool *p)
{
    Luts *t = pool_alloc(p, sizeof *t);
    t->mlp = mlp;
    t->pool = p;
    return t;
}

void luts_take(Luts *t, uint32_t unit, const Forms *gate, uint32_t g, const Forms *up, uint32_t u)
{
    uint32_t set[MAX_INPUTS + 1], n = inputs(gate, g, up, u, set);
    Lut *l = best_lut(t, set, n);
    if (!l) {
        l = pool_alloc(t->pool, sizeof *l);
        vec_push(&t->lut, l);
    }
    for (uint32_t i = 0; i < n; i++) add_channel(l->channel, &l->nchannels, set[i]);
    vec_push(&l->unit, unit);
}

static bool holds(const uint32_t *set, uint32_t n, uint32_t channel)
{
    for (uint32_t i = 0; i < n; i++)
        if (set[i] == channel) return true;
    return false;
}

static void add_bit(Segment64 *segment, uint32_t *n, uint32_t channel)
{
    uint32_t k = 0;
    while (k < *n && segment[k].word != channel >> 6) k++;
    if (k == *n) segment[(*n)++] = (Segment64){channel >> 6, 0, 0};
    segment[k].mask |= 1ull << (channel & 63);
    segment[k].bits++;
}

static void set_segments(Lut *l)
{
    l->nsegments = l->ntame = 0;
    l->hopeless = l->nchannels + (NARROW - 1) * l->nnarrow + (WIDE - 1) * l->nwide > 64;
    for (uint32_t i = 0; i < l->nnarrow; i++) add_bit(l->tame, &l->ntame, l->narrow[i]);
    for (uint32_t i = 0; i < l->nchannels; i++) {
        uint32_t c = l->channel[i];
        if (!holds(l->narrow, l->nnarrow, c) && !holds(l->wide, l->nwide, c)) add_bit(l->segment, &l->nsegments, c);
    }
}

static Slot *new_slots(uint32_t cap)
{
    Slot *slot = xrealloc(NULL, cap * sizeof *slot);
    for (uint32_t k = 0; k < cap; k++) slot[k].n = FREE;
    return slot;
}

static void empty(Lut *l, uint32_t cap)
{
    free(l->slot);
    l->entries.n = 0;
    l->n = 0;
    l->cap = cap;
    l->slot = new_slots(cap);
}

void luts_finish(Luts *t)
{
    for (uint32_t i = 0; i < t->lut.n; i++) {
        set_segments(t->lut.data[i]);
        empty(t->lut.data[i], 64);
    }
}

void luts_close(Luts *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->lut.n; i++) {
        Lut *l = t->lut.data[i];
        free(l->slot);
        free(l->entries.data);
        free(l->unit.data);
    }
    free(t->lut.data);
}

/* ---- one token ---- */
static Slot *slot_of(const Lut *l, uint64_t key)
{
    uint32_t k = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40) & (l->cap - 1);
    while (l->slot[k].n != FREE && l->slot[k].key != key) k = (k + 1) & (l->cap - 1);
    return &l->slot[k];
}

static void grow(Lut *l)
{
    Slot *old = l->slot, *end = old + l->cap;
    l->cap *= 2;
    l->slot = new_slots(l->cap);
    for (const Slot *s = old; s < end; s++)
        if (s->n != FREE) *slot_of(l, s->key) = *s;
    free(old);
}

/* Channels that turn out to be no bits, or wider than thought, get more room; what has been remembered is under keys that
 * no longer hold. False when nothing could be changed. */
static bool widen(Lut *l, Stream *s)
{
    bool changed = false;
    for (uint32_t i = 0; i < l->nnarrow; i++) {
        uint32_t c = l->narrow[i];
        if (!(s->wild[c >> 6] >> (c & 63) & 1)) continue;
        l->wide[l->nwide++] = c;
        l->narrow[i--] = l->narrow[--l->nnarrow];
        changed = true;
    }
    for (uint32_t i = 0; i < l->nchannels; i++) {
        uint32_t c = l->channel[i];
        if (!(s->odd[c >> 6] >> (c & 63) & 1) || holds(l->narrow, l->nnarrow, c) || holds(l->wide, l->nwide, c)) continue;
        l->narrow[l->nnarrow++] = c;
        stream_code(s, c >> 6);
        changed = true;
    }
    if (!changed) return false;
    set_segments(l);
    empty(l, 64);
    return true;
}

static bool add_wide(const Lut *l, const Stream *s, uint64_t *key)
{
    for (uint32_t i = 0; i < l->nwide; i++) {
        const float half = 1 << (WIDE - 1), x = s->x[l->wide[i]];
        if (!(x >= -half && x < half) || x != (float)(int)x) return false;
        *key = *key << WIDE | (uint64_t)((int)x + (1 << (WIDE - 1)));
    }
    return true;
}

/* False when an input does not fit its place in the key. Defined twice: with and without the instruction that gathers bits. */
#define DEFINE_KEY(name, attribute, gather)                                                                  \
    attribute static bool name(const Lut *l, const Stream *s, uint64_t *out)                                 \
    {                                                                                                        \
        uint64_t key = 0, bad = 0;                                                                           \
        for (uint32_t i = 0; i < l->nsegments; i++) {                                                        \
            const Segment64 *g = &l->segment[i];                                                             \
            bad |= s->odd[g->word] & g->mask;                                                                \
            key = key << g->bits | gather(s->live[g->word], g->mask);                                        \
        }                                                                                                    \
        for (uint32_t i = 0; i < l->ntame; i++) bad |= s->wild[l->tame[i].word] & l->tame[i].mask;           \
        for (uint32_t i = 0; i < l->nnarrow; i++) key = key << NARROW | (uint64_t)(s->code[l->narrow[i]] & 15); \
        *out = key;                                                                                          \
        return bad == 0 && (l->nwide == 0 || add_wide(l, s, out));                                           \
    }
DEFINE_KEY(key_plain, , gather_bits)
#if defined(__x86_64__)
DEFINE_KEY(key_bmi2, __attribute__((target("bmi2"))), _pext_u64)
#endif

static bool make_key(const Lut *l, const Stream *s, uint64_t *key)
{
#if defined(__x86_64__)
    if (simd) return key_bmi2(l, s, key);
#endif
    return key_plain(l, s, key);
}

static Slot *fill(Luts *t, Lut *l, uint64_t key, const Stream *s)
{
    if (l->n >= MAX_ENTRIES) empty(l, l->cap);
    else if (l->n * 2 >= l->cap) grow(l);
    Slot *slot = slot_of(l, key);
    *slot = (Slot){key, 0, l->entries.n, 0};
    mlp_patch(t->mlp, l->unit.data, l->unit.n, s, &l->entries);
    slot->n = l->entries.n - slot->first;
    for (uint32_t k = slot->first; k < l->entries.n; k++) slot->touched |= touch_of(l->entries.data[k].at);
    l->n++;
    return slot;
}

uint32_t luts_eval(Luts *t, Stream *s, Patch *due, uint32_t n)
{
    for (uint32_t i = 0; i < t->lut.n; i++) {
        Lut *l = t->lut.data[i];
        uint64_t key = 0;
        bool coded = make_key(l, s, &key);
        while (!coded && widen(l, s)) coded = make_key(l, s, &key);
        if (!coded || l->hopeless) {
            mlp_compute(t->mlp, l->unit.data, l->unit.n, s);
            continue;
        }
        const Slot *slot = slot_of(l, key);
        if (slot->n == FREE) slot = fill(t, l, key, s);
        if (slot->n) due[n++] = (Patch){l->entries.data + slot->first, slot->n, slot->touched};
    }
    return n;
}

uint32_t luts_count(const Luts *t) { return t->lut.n; }
