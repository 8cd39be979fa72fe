/* lut.c: MLP units with few inputs, as look-up tables filled on demand.
 *
 * Units whose gate and up forms use at most MAX_INPUTS channels are gathered into tables with common inputs: the digits of an
 * adder, the bits of a selector. What all units of a table add to the stream is a function of its inputs, so it is worked
 * out once for each combination that occurs and remembered. A channel is one bit of the key; one that has been seen to be
 * neither 0 nor 1 takes as many of its low bits as tell the values of its range apart, or twelve where the stream has no
 * range for it. When a channel leaves its range the units are gathered anew, since every bit more doubles the
 * combinations. Units with a channel that is no integer of twelve bits, and tables with keys of more than 64 bits, are
 * computed. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Inputs of one unit; bits of a table's key up to which units share it, when they share half their bits, and when not; up to which it is kept
 * when channels get wider; up to which a slot's number is the key. */
enum { MAX_INPUTS = 16, RELATED = 14, UNRELATED = 9, TOO_WIDE = 20, DIRECT = 10, MAX_ENTRIES = 1 << 15, WIDE = 12, KINDS = CODE_BITS + 2, FREE = 0xffffffff };

/* Units with the same channels. */
typedef struct {
    uint32_t n, channel[MAX_INPUTS];
    uint64_t *set; /* the same as numbers in Luts.channel */
    uint32_t bits;
    VEC(uint32_t) unit;
} Class;
typedef struct {
    uint32_t at, next; /* in a list: a class, and index + 1; of a channel: both ends */
} ClassRef;
/* Bits of the key that come from one word of a plane. */
typedef struct {
    uint32_t plane, shift; /* index into Stream.plane */
    uint64_t mask;
} Segment64;
/* What is added for one key: entries [first, first + n). */
typedef struct {
    uint64_t key;
    uint32_t first, n; /* n FREE: nothing is remembered here */
} Slot;
typedef enum { KEY_DIRECT, KEY_HASH, KEY_SLOW } KeyMode; /* slow: not used yet, wide channels or too many bits */
/* What a token needs, close together. */
typedef struct {
    uint32_t last; /* the table's segments end here, and the next one's begin */
    uint8_t mode, shift;
    Slot *slot;
    const Entry *entry; /* = entries.data */
    uint32_t cap;
} Table;
typedef struct {
    uint64_t *set; /* channels */
    uint32_t nsegments, bits;
    Segment64 *segment;
    VEC(uint32_t) wide; /* channels of twelve bits */
    VEC(uint32_t) unit;
    uint32_t n;      /* keys that are remembered, by open addressing; a direct table has a slot for every key */
    Entries entries; /* of this table alone, so that it can be emptied */
} Lut;
struct Luts {
    Mlp *mlp;
    Pool *pool;
    uint32_t words;           /* of the stream */
    VEC(Class) class;
    VEC(uint64_t) sign;       /* of every class, until luts_finish sorts them */
    VEC(ClassRef) having;     /* likewise: lists of the classes that have a channel, in order */
    ClassRef *list;           /* [words * 64] of a channel: first and last + 1 in `having`, 0: none */
    VEC(uint32_t) channel;    /* that any class uses */
    uint8_t *kind;            /* [words * 64] of a channel: 0 the bit of PLANE_LIVE, 1 .. CODE_BITS so many of its code, KINDS - 1 wide */
    uint64_t *of_kind;        /* [KINDS, nwords] sets */
    uint32_t ranges;          /* Stream.ranges when they were looked at */
    uint32_t *number;         /* [words * 64] in `channel`, from 1 on */
    uint32_t nwords;          /* of a set */
    uint32_t n;
    Lut *lut;
    Table *table;             /* [n] */
    VEC(Segment64) segment;   /* of all tables, in order */
    uint64_t *key;            /* [n] of this token */
    uint64_t *none;           /* [PLANES * words] bits that must be 0: channels that are no longer what their width says */
    VEC(uint32_t) guard;      /* the words of it that are not 0 */
};

/* ---- building ---- */
static void add_channel(uint32_t *set, uint32_t *n, uint32_t c)
{
    for (uint32_t i = 0; i < *n && i <= MAX_INPUTS; i++)
        if (set[i] == c) return;
    if (*n <= MAX_INPUTS) set[(*n)++] = c;
}

/* The channels of both forms, in order; more than MAX_INPUTS count as MAX_INPUTS + 1. */
static uint32_t inputs(const Forms *gate, uint32_t g, const Forms *up, uint32_t u, uint32_t *set)
{
    uint32_t n = 0;
    for (uint32_t k = gate->start[g]; k < gate->start[g + 1]; k++) add_channel(set, &n, gate->e.data[k].at);
    for (uint32_t k = up->start[u]; k < up->start[u + 1]; k++) add_channel(set, &n, up->e.data[k].at);
    for (uint32_t i = 1; i < n; i++) { /* few, and nearly in order */
        uint32_t x = set[i], k = i;
        for (; k && set[k - 1] > x; k--) set[k] = set[k - 1];
        set[k] = x;
    }
    return n;
}

bool lut_fits(const Forms *gate, uint32_t g, const Forms *up, uint32_t u)
{
    uint32_t set[MAX_INPUTS + 1], n = inputs(gate, g, up, u, set);
    return n > 0 && n <= MAX_INPUTS;
}

Luts *luts_make(Mlp *mlp, Pool *p, uint32_t channels)
{
    Luts *t = pool_alloc(p, sizeof *t);
    t->mlp = mlp;
    t->pool = p;
    t->words = (channels + 63) / 64;
    t->kind = pool_array(p, t->words, 64);
    t->number = pool_array(p, t->words, 64 * sizeof *t->number);
    t->list = pool_array(p, t->words, 64 * sizeof *t->list);
    t->none = pool_array(p, (size_t)PLANES * t->words, sizeof *t->none);
    return t;
}

/* A set that has all channels of another has all bits of its sign. */
static uint64_t sign_of(const uint32_t *set, uint32_t n)
{
    uint64_t sign = 0;
    for (uint32_t i = 0; i < n; i++) sign |= 1ull << (set[i] * 0x9e3779b1u >> 26);
    return sign;
}

static void list_class(Luts *t, uint32_t class, uint32_t channel)
{
    ClassRef *l = &t->list[channel];
    uint32_t at = vec_push(&t->having, ((ClassRef){class, 0})) + 1;
    if (l->next) t->having.data[l->next - 1].next = at;
    else l->at = at;
    l->next = at;
}

void luts_take(Luts *t, uint32_t unit, const Forms *gate, uint32_t g, const Forms *up, uint32_t u)
{
    uint32_t set[MAX_INPUTS + 1], n = inputs(gate, g, up, u, set), i = t->class.n;
    uint64_t sign = sign_of(set, n);
    for (uint32_t k = t->list[set[0]].at; k && i == t->class.n; k = t->having.data[k - 1].next) {
        const Class *c = &t->class.data[t->having.data[k - 1].at];
        if (c->n == n && !memcmp(c->channel, set, n * sizeof *set)) i = t->having.data[k - 1].at;
    }
    if (i == t->class.n) {
        Class c = {.n = n};
        memcpy(c.channel, set, n * sizeof *set);
        vec_push(&t->class, c);
        vec_push(&t->sign, sign);
        for (uint32_t k = 0; k < n; k++) list_class(t, i, set[k]);
    }
    vec_push(&t->class.data[i].unit, unit);
    for (uint32_t k = 0; k < n; k++) {
        if (t->number[set[k]]) continue;
        vec_push(&t->channel, set[k]);
        t->number[set[k]] = t->channel.n;
    }
}

/* Both in order. */
static bool contains(const Class *c, const uint32_t *set, uint32_t n)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < c->n && k < n; i++) k += c->channel[i] == set[k];
    return k == n;
}

bool luts_share(Luts *t, uint32_t unit, const Forms *gate, uint32_t g, const Forms *up, uint32_t u)
{
    uint32_t set[MAX_INPUTS + 1], n = inputs(gate, g, up, u, set);
    uint64_t sign = sign_of(set, n);
    for (uint32_t k = n ? t->list[set[0]].at : 0; k; k = t->having.data[k - 1].next) {
        uint32_t i = t->having.data[k - 1].at;
        if ((sign & ~t->sign.data[i]) || !contains(&t->class.data[i], set, n)) continue;
        vec_push(&t->class.data[i].unit, unit);
        return true;
    }
    return false;
}

static const uint8_t bits_of_kind[KINDS] = {1, 1, 2, 3, 4, WIDE};

/* Bits of a key for the channels of a set that another one does not have. */
static uint32_t bits_of(const Luts *t, const uint64_t *set, const uint64_t *without)
{
    uint32_t bits = 0;
    for (uint32_t w = 0; w < t->nwords; w++) {
        uint64_t m = set[w] & ~(without ? without[w] : 0);
        for (uint32_t k = 0; m && k < KINDS; k++) {
            uint64_t hit = m & t->of_kind[k * t->nwords + w];
            if (hit) bits += bits_of_kind[k] * (uint32_t)__builtin_popcountll(hit);
            m &= ~hit;
        }
    }
    return bits;
}

/* The largest first, so that smaller ones find a table that has their channels. */
static int by_bits(const void *p, const void *q)
{
    const Class *x = p, *y = q;
    if (x->bits != y->bits) return x->bits > y->bits ? -1 : 1;
    return x->n != y->n ? (x->n < y->n ? -1 : 1) : memcmp(x->channel, y->channel, x->n * sizeof *x->channel);
}

/* The table that grows least. */
static uint32_t best_table(const Luts *t, const Class *c)
{
    uint32_t best = t->n, least = UINT32_MAX;
    for (uint32_t i = 0; i < t->n && least; i++) {
        uint32_t more = bits_of(t, c->set, t->lut[i].set), all = more + t->lut[i].bits;
        if (more >= least) continue;
        if (more && all > UNRELATED && (all > RELATED || 2 * more > c->bits)) continue;
        best = i;
        least = more;
    }
    return best;
}

static void add_segment(Lut *l, uint32_t plane, uint64_t mask)
{
    l->segment[l->nsegments++] = (Segment64){plane, l->bits, mask};
    l->bits += (uint32_t)__builtin_popcountll(mask);
}

/* The channels of a kind among those of a set, as bits of the stream's words. */
static void place_kind(const Luts *t, const uint64_t *set, uint32_t kind, uint64_t *bit)
{
    memset(bit, 0, t->words * sizeof *bit);
    for (uint32_t w = 0; w < t->nwords; w++)
        for (uint64_t m = set[w] & t->of_kind[kind * t->nwords + w]; m; m &= m - 1) {
            uint32_t c = t->channel.data[w * 64 + (uint32_t)__builtin_ctzll(m)];
            bit[c >> 6] |= 1ull << (c & 63);
        }
}

/* A new key by what is known of the channels; what is remembered is forgotten. */
static void make_key(Luts *t, uint32_t table)
{
    Lut *l = &t->lut[table];
    l->nsegments = l->bits = l->wide.n = 0;
    t->table[table].mode = KEY_SLOW;
    free(t->table[table].slot);
    t->table[table].slot = NULL;
    uint64_t *bit = xrealloc(NULL, t->words * sizeof *bit);
    l->segment = xrealloc(l->segment, (t->channel.n + 1) * CODE_BITS * sizeof *l->segment);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        place_kind(t, l->set, kind, bit);
        for (uint32_t w = 0; w < t->words; w++) {
            if (!bit[w]) continue;
            if (kind == KINDS - 1)
                for (uint64_t m = bit[w]; m; m &= m - 1) vec_push(&l->wide, w * 64 + (uint32_t)__builtin_ctzll(m));
            if (kind == 0) add_segment(l, PLANE_LIVE * t->words + w, bit[w]);
            for (uint32_t b = 0; kind < KINDS - 1 && b < kind; b++) add_segment(l, (PLANE_CODE + b) * t->words + w, bit[w]);
        }
    }
    l->segment = xrealloc(l->segment, (l->nsegments + 1) * sizeof *l->segment);
    l->bits += WIDE * l->wide.n;
    free(bit);
}

static void free_tables(Luts *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        Lut *l = &t->lut[i];
        free(l->set);
        free(l->segment);
        free(t->table[i].slot);
        free(l->entries.data);
        free(l->unit.data);
        free(l->wide.data);
    }
    free(t->lut);
    free(t->table);
    t->lut = NULL;
    t->table = NULL;
    t->n = 0;
}

static void note_kinds(Luts *t)
{
    memset(t->of_kind, 0, KINDS * t->nwords * sizeof *t->of_kind);
    memset(t->none, 0, (size_t)PLANES * t->words * sizeof *t->none);
    for (uint32_t i = 0; i < t->channel.n; i++) {
        uint32_t c = t->channel.data[i], kind = t->kind[c];
        t->of_kind[kind * t->nwords + (i >> 6)] |= 1ull << (i & 63);
        if (kind < KINDS - 1) t->none[(kind ? PLANE_WILD : PLANE_ODD) * t->words + (c >> 6)] |= 1ull << (c & 63);
    }
    t->guard.n = 0;
    for (uint32_t w = 0; w < PLANES * t->words; w++)
        if (t->none[w]) vec_push(&t->guard, w);
}

static bool has_any(const Luts *t, const Lut *l, const uint64_t *set)
{
    uint64_t hit = 0;
    for (uint32_t w = 0; w < t->nwords; w++) hit |= set[w] & l->set[w];
    return hit;
}

static void place_segments(Luts *t)
{
    t->segment.n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        for (uint32_t k = 0; k < t->lut[i].nsegments; k++) vec_push(&t->segment, t->lut[i].segment[k]);
        t->table[i].last = t->segment.n;
    }
}

/* Gathers the classes into tables, by what is known of their channels. */
static void gather_classes(Luts *t)
{
    uint32_t classes = t->class.n;
    free_tables(t);
    t->lut = xrealloc(NULL, (classes + 1) * sizeof *t->lut);
    t->table = xrealloc(NULL, (classes + 1) * sizeof *t->table);
    for (uint32_t i = 0; i < classes; i++) t->class.data[i].bits = bits_of(t, t->class.data[i].set, NULL);
    if (classes) qsort(t->class.data, classes, sizeof *t->class.data, by_bits);
    for (uint32_t i = 0; i < classes; i++) {
        Class *c = &t->class.data[i];
        Lut *l = &t->lut[best_table(t, c)];
        if (l == t->lut + t->n) {
            *l = (Lut){.set = xrealloc(NULL, t->nwords * sizeof *l->set)};
            t->table[t->n] = (Table){.mode = KEY_SLOW};
            memset(l->set, 0, t->nwords * sizeof *l->set);
            t->n++;
        }
        l->bits += bits_of(t, c->set, l->set);
        for (uint32_t w = 0; w < t->nwords; w++) l->set[w] |= c->set[w];
        for (uint32_t u = 0; u < c->unit.n; u++) vec_push(&l->unit, c->unit.data[u]);
    }
    for (uint32_t i = 0; i < t->n; i++) make_key(t, i);
    place_segments(t);
}

/* After channels got another kind: new keys for the tables that have them, or, where that would make one too wide, other tables. */
static void adapt(Luts *t, const uint64_t *changed)
{
    bool wide = false;
    note_kinds(t);
    for (uint32_t i = 0; i < t->n; i++) wide |= has_any(t, &t->lut[i], changed) && bits_of(t, t->lut[i].set, NULL) > TOO_WIDE;
    if (wide) {
        gather_classes(t);
        return;
    }
    for (uint32_t i = 0; i < t->n; i++)
        if (has_any(t, &t->lut[i], changed)) make_key(t, i);
    place_segments(t);
}

void luts_finish(Luts *t)
{
    t->nwords = (t->channel.n + 63) / 64;
    t->key = pool_array(t->pool, t->class.n, sizeof *t->key);
    t->of_kind = pool_array(t->pool, (size_t)KINDS * t->nwords, sizeof *t->of_kind);
    uint64_t *set = pool_array(t->pool, (size_t)t->class.n * t->nwords, sizeof *set);
    for (uint32_t i = 0; i < t->class.n; i++, set += t->nwords) {
        Class *c = &t->class.data[i];
        c->set = set;
        for (uint32_t k = 0; k < c->n; k++) {
            uint32_t at = t->number[c->channel[k]] - 1;
            c->set[at >> 6] |= 1ull << (at & 63);
        }
    }
    note_kinds(t);
    gather_classes(t);
}

void luts_close(Luts *t)
{
    if (!t) return;
    free_tables(t);
    for (uint32_t i = 0; i < t->class.n; i++) free(t->class.data[i].unit.data);
    free(t->class.data);
    free(t->channel.data);
    free(t->sign.data);
    free(t->having.data);
    free(t->guard.data);
    free(t->segment.data);
}

uint32_t luts_most(const Luts *t) { return t->class.n; }

/* ---- slots ---- */
static void empty(Lut *l, Table *t, uint32_t cap)
{
    t->slot = xrealloc(t->slot, cap * sizeof *t->slot);
    for (uint32_t k = 0; k < cap; k++) t->slot[k].n = FREE;
    l->entries.n = 0;
    l->n = 0;
    t->cap = cap;
    t->shift = (uint8_t)(64 - clog2(cap));
}

static inline Slot *first_slot(const Table *t, uint64_t key)
{
    return t->slot + (t->mode == KEY_DIRECT ? key : key * 0x9e3779b97f4a7c15ull >> t->shift);
}

static inline Slot *slot_of(const Table *t, uint64_t key)
{
    Slot *s = first_slot(t, key);
    while (s->n != FREE && s->key != key) s = s + 1 < t->slot + t->cap ? s + 1 : t->slot;
    return s;
}

static void grow(Lut *l, Table *t)
{
    Slot *old = t->slot, *end = old + t->cap;
    uint32_t n = l->n, entries = l->entries.n;
    t->slot = NULL;
    empty(l, t, t->cap * 2);
    l->n = n;
    l->entries.n = entries;
    for (const Slot *s = old; s < end; s++)
        if (s->n != FREE) *slot_of(t, s->key) = *s;
    free(old);
}

static Slot *fill(Luts *luts, Lut *l, Table *t, uint64_t key, const Stream *s)
{
    if (t->mode == KEY_HASH && l->n >= MAX_ENTRIES) empty(l, t, t->cap);
    else if (t->mode == KEY_HASH && l->n * 2 >= t->cap) grow(l, t);
    Slot *slot = slot_of(t, key);
    *slot = (Slot){key, l->entries.n, 0};
    mlp_patch(luts->mlp, l->unit.data, l->unit.n, s, &l->entries);
    slot->n = l->entries.n - slot->first;
    t->entry = l->entries.data;
    l->n++;
    return slot;
}

/* ---- one token ---- */
static bool plane_bit(const Stream *s, uint32_t plane, uint32_t c) { return s->plane[plane * s->words + (c >> 6)] >> (c & 63) & 1; }

/* Channels that turn out to be no bits, or to have a wider range than was thought, get more room. */
static void widen(Luts *t, Stream *s)
{
    uint64_t *changed = xrealloc(NULL, (t->nwords + 1) * sizeof *changed), any = 0;
    memset(changed, 0, (t->nwords + 1) * sizeof *changed);
    for (uint32_t i = 0; i < t->channel.n; i++) {
        uint32_t c = t->channel.data[i], kind = t->kind[c];
        if (kind == KINDS - 1) continue;
        if (plane_bit(s, kind ? PLANE_WILD : PLANE_ODD, c)) kind = stream_range(s, c) ? 1 : KINDS - 1;
        if (kind && kind < KINDS - 1) kind = clog2((uint32_t)(s->high[c] - s->low[c] + 1));
        if (kind == t->kind[c]) continue;
        t->kind[c] = (uint8_t)kind;
        changed[i >> 6] |= any = 1ull << (i & 63);
    }
    t->ranges = s->ranges;
    if (any) adapt(t, changed);
    free(changed);
}

static bool must_widen(const Luts *t, const Stream *s)
{
    uint64_t bad = 0;
    for (uint32_t i = 0; i < t->guard.n; i++) bad |= s->plane[t->guard.data[i]] & t->none[t->guard.data[i]];
    return bad;
}

static bool add_wide(const Lut *l, const Stream *s, uint64_t *key)
{
    for (uint32_t i = 0; i < l->wide.n; i++) {
        const float half = 1 << (WIDE - 1), x = s->x[l->wide.data[i]];
        if (!(x >= -half && x < half) || x != (float)(int)x) return false;
        *key = *key << WIDE | (uint64_t)((int)x + (1 << (WIDE - 1)));
    }
    return true;
}

/* Nothing is remembered for the key, or it is not complete, or the units have to be computed. */
static uint32_t eval_slowly(Luts *luts, uint32_t table, const Stream *s, uint64_t key, Patch *due, uint32_t n)
{
    Lut *l = &luts->lut[table];
    Table *t = &luts->table[table];
    if (l->bits > 64 || !add_wide(l, s, &key)) {
        mlp_compute(luts->mlp, l->unit.data, l->unit.n, s);
        return n;
    }
    t->mode = l->bits <= DIRECT ? KEY_DIRECT : KEY_HASH;
    if (!t->slot) empty(l, t, l->bits <= DIRECT ? 1u << l->bits : 64);
    Slot *slot = slot_of(t, key);
    if (slot->n == FREE) slot = fill(luts, l, t, key, s);
    due[n] = (Patch){t->entry + slot->first, slot->n};
    if (l->wide.n) t->mode = KEY_SLOW;
    return n + (slot->n != 0);
}

/* Every table's key. The slots are fetched meanwhile: they lie far apart, and waiting for one after the other would be most of the work.
 * Defined twice: with and without the instruction that gathers bits. */
#define DEFINE_KEYS(name, attribute, gather)                                                                             \
    attribute static void name(const Luts *luts, const Stream *s)                                                        \
    {                                                                                                                    \
        const Segment64 *g = luts->segment.data;                                                                         \
        for (uint32_t i = 0; i < luts->n; i++) {                                                                         \
            const Table *t = &luts->table[i];                                                                            \
            uint64_t key = 0;                                                                                            \
            for (const Segment64 *last = luts->segment.data + t->last; g < last; g++)                                    \
                key |= gather(s->plane[g->plane], g->mask) << (g->shift & 63);                                           \
            luts->key[i] = key;                                                                                          \
            if (t->mode != KEY_SLOW) __builtin_prefetch(first_slot(t, key));                                             \
        }                                                                                                                \
    }
DEFINE_KEYS(keys_plain, , gather_bits)
#if defined(__x86_64__)
DEFINE_KEYS(keys_bmi2, __attribute__((target("bmi2"))), _pext_u64)
#endif

static uint32_t look_up(Luts *luts, const Stream *s, Patch *due, uint32_t n)
{
    for (uint32_t i = 0; i < luts->n; i++) {
        const Table *t = &luts->table[i];
        const Slot *slot = t->mode == KEY_SLOW ? NULL : slot_of(t, luts->key[i]);
        if (!slot || slot->n == FREE) {
            n = eval_slowly(luts, i, s, luts->key[i], due, n);
            continue;
        }
        const Entry *e = t->entry + slot->first;
        __builtin_prefetch(e);
        due[n] = (Patch){e, slot->n};
        n += slot->n != 0;
    }
    return n;
}

uint32_t luts_eval(Luts *t, Stream *s, Patch *due, uint32_t n)
{
    if (t->ranges != s->ranges || must_widen(t, s)) widen(t, s);
#if defined(__x86_64__)
    if (simd) keys_bmi2(t, s);
    else
#endif
        keys_plain(t, s);
    return look_up(t, s, due, n);
}
