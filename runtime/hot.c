/* hot.c: a path for each token. At first there is none but the one without guards; the tokens that it makes are a sample, and guards are chosen from it: bit
 * by bit and read by read, those that are constant, or take few values that come again, given the guards before them. From then on combinations of
 * guards are counted, and one that has come often gets a path. When too many tokens find none, guards are chosen anew, with fresh samples. */
#include "hot.h"
#include <stdlib.h>

enum {
    FRAME = 1 << 16,
    SAMPLES = 8192,        /* of the last four choices at least, so that what one phase of a run keeps constant and another does not is no guard */
    CLASSES = 4 * SAMPLES, /* of a hash table of them */
    COMES_AGAIN = 8,       /* samples of a class that will earn its path */
    BUCKETS = 1 << 14,
    COUNTERS = 1 << 15,
    MOST_CHOICES = 40,     /* a run for which no choice is good is better off without paths */
    MOST_CODE = 48 << 20   /* bytes */
};

typedef struct {
    uint64_t hash;
    uint32_t n;
} Counter;

struct Hot {
    Slice *s;
    HotChip *c;
    HotArena *arena;
    HotMachine m;
    HotPath *general, *last;
    HotPath **bucket;  /* [BUCKETS] */
    uint64_t *mask;    /* [key / 8] guards of the key, a byte each */
    uint64_t *out_guard; /* [nout] */
    bool chosen, hopeless, full; /* full: of code */
    uint32_t choices;
    uint32_t batch, often, window; /* samples for a choice; how often a combination comes before it gets a path; tokens between two looks back */
    Counter *counter;  /* [COUNTERS] */
    uint8_t *sample_key; /* [SAMPLES][key] */
    uint64_t *sample_out; /* [SAMPLES][nout] */
    uint32_t nsamples, fresh; /* kept; taken since guards were chosen */
    uint64_t window_general, window_tokens;
    HotReport report;
};

/* ---- hashing ---- */
static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static uint64_t key_hash(const Hot *h)
{
    const uint8_t *key = h->m.frame + h->c->key_at;
    uint64_t hash = 0, x;
    for (uint32_t i = 0; i < h->c->key / 8; i++) {
        memcpy(&x, key + 8 * i, 8);
        hash = mix(hash, x & h->mask[i]);
    }
    return hash;
}

static bool key_matches(const Hot *h, const HotPath *p)
{
    const uint8_t *key = h->m.frame + h->c->key_at;
    uint64_t differs = 0, x;
    for (uint32_t i = 0; i < h->c->key / 8; i++) {
        memcpy(&x, key + 8 * i, 8);
        differs |= (x & h->mask[i]) ^ p->key[i];
    }
    return differs == 0;
}

/* ---- between the slice's lane 0 and the frame ---- */
static void to_frame(Hot *h)
{
    for (uint32_t k = 0; k < h->c->key; k++)
        if (h->c->slot_at[k] != HOT_NONE) h->m.frame[h->c->key_at + k] = h->s->plane[h->c->slot_at[k]].w[0] & 1;
}

static void to_planes(Hot *h)
{
    for (uint32_t k = 0; k < h->c->key; k++)
        if (h->c->slot_at[k] != HOT_NONE) h->s->plane[h->c->slot_at[k]].w[0] = h->m.frame[h->c->key_at + k] & 1;
}

/* ---- paths ---- */
static void drop_paths(Hot *h)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (HotPath *p = h->bucket[i], *next; p; p = next) next = p->chain, hot_path_free(p);
    memset(h->bucket, 0, BUCKETS * sizeof *h->bucket);
    memset(h->counter, 0, COUNTERS * sizeof *h->counter);
    hot_path_free(h->general);
    hot_arena_reset(h->arena);
    h->general = h->last = NULL;
    h->report.paths = 0;
}

static bool begin_chip(Hot *h)
{
    if (!(h->c = hot_chip_new(h->s))) return false;
    h->mask = pool_array(h->c->pool, h->c->key / 8, sizeof *h->mask);
    h->out_guard = pool_array(h->c->pool, h->c->nout, sizeof *h->out_guard);
    h->m.out = pool_array(h->c->pool, h->c->nout, sizeof *h->m.out);
    h->sample_key = pool_array(h->c->pool, SAMPLES, h->c->key);
    h->sample_out = pool_array(h->c->pool, (size_t)SAMPLES * h->c->nout, sizeof *h->sample_out);
    h->nsamples = h->fresh = h->choices = 0;
    h->chosen = false;
    to_frame(h);
    return (h->general = hot_path_make(h->c, h->arena, NULL)) != NULL;
}

Hot *hot_new(Slice *s, uint8_t *state, bool eager)
{
    Hot *h = xrealloc(NULL, sizeof *h);
    *h = (Hot){.s = s, .m = {.state = state}, .batch = eager ? 32 : 2048, .often = eager ? 2 : 24, .window = eager ? 64 : 4096};
    h->arena = hot_arena_new();
    h->bucket = calloc(BUCKETS, sizeof *h->bucket);
    h->counter = calloc(COUNTERS, sizeof *h->counter);
    h->m.frame = calloc(FRAME, 1);
    if (!h->bucket || !h->counter || !h->m.frame) die("out of memory");
    memset(slice_active(s), 0, PLANE_WORDS * sizeof(uint64_t));
    slice_active(s)[0] = 1;
    for (uint32_t t = 1; t < MAX_TAPS; t++) memset(&s->plane[s->begun[t]], 0xff, sizeof(Plane));
    if (begin_chip(h)) return h;
    hot_end(h);
    return NULL;
}

void hot_end(Hot *h)
{
    if (h->c) to_planes(h);
    slice_save_lane(h->s, 0, h->m.state);
    drop_paths(h);
    hot_chip_free(h->c);
    hot_arena_free(h->arena);
    free(h->bucket);
    free(h->counter);
    free(h->m.frame);
    free(h->m.undo.data);
    free(h);
}

HotReport hot_report(const Hot *h)
{
    HotReport r = h->report;
    r.code = hot_arena_bytes(h->arena);
    return r;
}

/* ---- choosing guards ---- */
typedef struct {
    uint64_t *class; /* [nsamples] the guards so far */
    uint64_t *trial, *value; /* value, count: [CLASSES] a hash table */
    uint32_t *count;
    uint32_t n, classes, most; /* most: classes that a bit of the key may lead to */
} Chooser;

/* How many samples are in classes that come again; *classes: how many classes there are. */
static uint32_t covered(Chooser *ch, uint32_t *classes)
{
    uint32_t often = 0;
    *classes = 0;
    memset(ch->count, 0, CLASSES * sizeof *ch->count);
    for (uint32_t i = 0; i < ch->n; i++) {
        uint64_t v = ch->trial[i];
        uint32_t at = (uint32_t)(v ^ v >> 32) % CLASSES;
        while (ch->count[at] && ch->value[at] != v) at = (at + 1) % CLASSES;
        ch->value[at] = v;
        if (!ch->count[at]++) ++*classes;
        if (ch->count[at] == COMES_AGAIN) often += COMES_AGAIN;
        else if (ch->count[at] > COMES_AGAIN) often++;
    }
    return often;
}

/* Takes what `trial` says into the guards when that makes no more classes, or not too many and eleven of twelve samples are still in classes that come again:
 * a token without a path costs ten times one that has one. */
static bool accept(Chooser *ch)
{
    uint32_t classes, often = covered(ch, &classes);
    if (classes > ch->classes && (classes > ch->most || often < ch->n - ch->n / 12)) return false;
    ch->classes = classes;
    memcpy(ch->class, ch->trial, ch->n * sizeof *ch->class);
    return true;
}

static void try_key(Hot *h, Chooser *ch, uint32_t first, uint32_t n)
{
    uint8_t *mask = (uint8_t *)h->mask;
    for (uint32_t i = 0; i < ch->n; i++) {
        ch->trial[i] = ch->class[i];
        for (uint32_t k = first; k < first + n; k++) ch->trial[i] = mix(ch->trial[i], h->sample_key[(size_t)i * h->c->key + k] & 1);
    }
    if (accept(ch)) memset(mask + first, 1, n);
}

static void try_out(Hot *h, Chooser *ch, uint32_t word, uint64_t bits)
{
    for (uint32_t i = 0; i < ch->n; i++) ch->trial[i] = mix(ch->class[i], h->sample_out[(size_t)i * h->c->nout + word] & bits);
    if (accept(ch)) h->out_guard[word] |= bits;
}

/* The token's kind first, then what is read, field by field: what was fetched decides most. What else is there before a token may add an eighth of classes:
 * mostly it follows, or is data. */
static void choose_guards(Hot *h)
{
    const HotChip *c = h->c;
    Chooser ch = {.n = h->nsamples, .classes = 1, .most = h->nsamples};
    ch.class = xrealloc(NULL, (2 * (size_t)ch.n + CLASSES) * sizeof *ch.class);
    ch.trial = ch.class + ch.n, ch.value = ch.trial + ch.n;
    ch.count = xrealloc(NULL, CLASSES * sizeof *ch.count);
    memset(ch.class, 0, ch.n * sizeof *ch.class);
    memset(h->mask, 0, c->key);
    memset(h->out_guard, 0, c->nout * sizeof *h->out_guard);
    try_key(h, &ch, 0, h->s->kind_bits);
    for (uint32_t l = 0; l < c->nlayers; l++) {
        const SliceDelta *d = c->layer[l].delta;
        for (uint32_t g = 0; g < d->groups.n; g++)
            if (!d->groups.data[g].bit) try_out(h, &ch, c->layer[l].first_out + d->groups.data[g].field.word, mask64(d->groups.data[g].field.bits) << d->groups.data[g].field.shift);
    }
    ch.most = ch.classes + ch.classes / 8;
    for (uint32_t k = c->token_bits; k < c->key; k++)
        if (c->slot_at[k] != HOT_NONE) try_key(h, &ch, k, 1);
    try_key(h, &ch, h->s->kind_bits, h->s->payload_bits);
    free(ch.class);
    free(ch.count);
    h->chosen = true;
    h->choices++;
    h->fresh = 0;
}

/* ---- what the general path saw ---- */
static void add_path(Hot *h, uint64_t hash)
{
    HotGuards g = {(const uint8_t *)h->mask, h->m.frame + h->c->key_at, h->out_guard, h->m.out};
    h->full = hot_arena_bytes(h->arena) > MOST_CODE;
    HotPath *p = h->full ? NULL : hot_path_make(h->c, h->arena, &g);
    if (!p) return;
    p->chain = h->bucket[hash % BUCKETS];
    h->bucket[hash % BUCKETS] = p;
    h->report.paths++;
}

/* The key's guards are `hash`; with what was read they make the combination that is counted. */
static void observe(Hot *h, uint64_t hash)
{
    const HotChip *c = h->c;
    if (h->fresh < h->batch) {
        uint32_t at = (h->choices * h->batch + h->fresh++) % SAMPLES; /* the oldest go */
        memcpy(h->sample_key + (size_t)at * c->key, h->m.frame + c->key_at, c->key);
        memcpy(h->sample_out + (size_t)at * c->nout, h->m.out, c->nout * sizeof *h->m.out);
        if (at >= h->nsamples) h->nsamples = at + 1;
        if (h->fresh == h->batch && !h->chosen) choose_guards(h);
        if (!h->chosen) return;
    }
    uint64_t all = hash;
    for (uint32_t w = 0; w < c->nout; w++) all = mix(all, h->m.out[w] & h->out_guard[w]);
    Counter *n = &h->counter[all % COUNTERS];
    if (n->hash != all) *n = (Counter){all, 0};
    if (++n->n == h->often) add_path(h, hash);
}

/* Paths of which a run has had enough lie beside those that it needs now: all begin anew. */
static void make_room(Hot *h)
{
    drop_paths(h);
    h->full = false;
    h->general = hot_path_make(h->c, h->arena, NULL);
}

/* Too many tokens without a path: other guards, from the latest samples and those before. */
static void look_back(Hot *h)
{
    bool poor = h->window_general * 5 > h->window_tokens;
    h->window_general = h->window_tokens = 0;
    if (!poor) h->fresh = 0;
    h->hopeless = poor && h->choices >= MOST_CHOICES;
    if (!poor || h->hopeless || !h->chosen || h->fresh < h->batch) return;
    choose_guards(h);
    make_room(h);
}

/* ---- a token ---- */
/* Code comes from far away when a run has many paths: the next one's is asked for while this one runs. */
static void ask_for(const HotPath *p)
{
    const char *at = (const char *)p->text;
    for (size_t i = 0; i < p->bytes; i += 64) __builtin_prefetch(at + i, 0, 2);
}

static HotResult run_path(Hot *h, const HotPath *p)
{
    const HotChip *c = h->c;
    if (p->next) ask_for(p->next);
    h->m.undo.n = 0;
    for (uint32_t l = 0; l < c->nlayers; l++) {
        if (p->code[l]) p->code[l](h->m.frame);
        HotResult r = hot_cells(&c->layer[l], &p->access[l], &h->m);
        if (r == HOT_FINE) continue;
        hot_undo(&h->m);
        return r;
    }
    if (p->code[c->nlayers]) p->code[c->nlayers](h->m.frame);
    uint8_t bad = 0;
    for (uint32_t i = 0; i < p->nchecks; i++) bad |= h->m.frame[c->bad_at + i];
    if (!(bad & 1)) return HOT_FINE;
    hot_undo(&h->m);
    return HOT_TROUBLE;
}

static void commit(Hot *h, const HotPath *p, uint32_t *out)
{
    const HotChip *c = h->c;
    uint8_t *frame = h->m.frame;
    for (const HotMove *x = p->move, *end = x + p->nmoves; x < end; x++) frame[x->to] = x->from == HOT_NONE ? x->value : frame[x->from];
    *out = slice_word_token(h->s, (hot_pack(frame + c->token_at, c->token_bits) & p->token_varies) | p->token_fixed);
}

static void put_token(Hot *h, uint32_t token) { hot_spread(h->m.frame + h->c->key_at, slice_token_word(h->s, token), h->c->token_bits); }

/* A range was left: the slice makes this token, and is compiled anew. */
static bool slow_token(Hot *h, uint32_t *out)
{
    size_t n = slice_bytes(h->s);
    uint8_t *state = xrealloc(NULL, n + 1);
    memcpy(state, h->m.state, n);
    to_planes(h);
    const char *why = slice_pass(h->s, h->m.state, n + 64);
    if (why) memcpy(h->m.state, state, n); /* the frame still holds the rest */
    else *out = slice_got(h->s, 0);
    free(state);
    if (why) return false;
    drop_paths(h);
    hot_chip_free(h->c);
    begin_chip(h); /* without a general path the next token ends it all */
    return true;
}

static HotPath *known_path(Hot *h, uint64_t hash)
{
    for (HotPath *p = h->bucket[hash % BUCKETS]; p; p = p->chain)
        if (key_matches(h, p) && run_path(h, p) == HOT_FINE) return p;
    return NULL;
}

bool hot_token(Hot *h, uint32_t token, uint32_t *out)
{
    if (!h->general) return false;
    if (++h->window_tokens >= h->window) look_back(h);
    if (h->full) make_room(h);
    if (!h->general || h->hopeless) return false;
    put_token(h, token);
    h->report.tokens++;
    HotPath *p = h->last ? h->last->next : NULL;
    if (!p || !key_matches(h, p) || run_path(h, p) != HOT_FINE) {
        uint64_t hash = h->chosen ? key_hash(h) : 0;
        p = h->chosen ? known_path(h, hash) : NULL;
        if (!p) {
            h->report.general++;
            h->window_general++;
            if (run_path(h, h->general) != HOT_FINE) return slow_token(h, out);
            observe(h, hash);
            commit(h, h->general, out);
            h->last = NULL;
            return true;
        }
        if (h->last) h->last->next = p;
    }
    commit(h, p, out);
    h->last = p;
    return true;
}
