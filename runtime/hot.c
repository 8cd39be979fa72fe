/* hot.c: a path for each token. At first there is none but the one without guards; the tokens that it makes are a sample, and guards are chosen from it
 * (hot_choose.c). From then on combinations of guards are counted, and one that has come often gets a path. Samples are taken all the time, always more
 * seldom; whenever there is a batch of them, guards that would be clearly better replace those that there are. So a choice from too short a part of the run
 * does not stay. When too many tokens find no path, although paths are made, samples are taken often again. */
#include "hot.h"
#include <stdlib.h>

enum {
    FRAME = 1 << 16,
    BUCKETS = 1 << 14,
    COUNTERS = 1 << 15,
    FIRST_STRIDE = 2,     /* tokens from one sample to the next, in the mean; four times as many after each batch */
    MOST_STRIDE = 1 << 20,
    MOST_POOR = 64,       /* a run most of whose tokens have no path in so many more windows than in which they have is better off without */
    MOST_CODE = 48 << 20  /* bytes */
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
    HotMask mask;
    uint32_t ahead;    /* layers up to the first whose reads are guards; 0: there is none */
    bool chosen, full; /* full: of code */
    uint32_t batch, often, window; /* samples for a choice; how often a combination comes before it gets a path; tokens between two looks back */
    Counter *counter;  /* [COUNTERS] */
    HotSamples *samples;
    uint32_t fresh, stride, until; /* samples taken since guards were chosen; tokens until the next one */
    uint64_t random;
    uint32_t window_general, window_tokens, window_paths, poor;
    HotReport report;
};

/* ---- hashing ---- */
static uint64_t key_hash(const Hot *h)
{
    const uint8_t *key = h->m.frame + h->c->key_at;
    uint64_t hash = 0, x;
    for (uint32_t i = 0; i < h->c->key / 8; i++) {
        memcpy(&x, key + 8 * i, 8);
        hash = hot_mix(hash, x & h->mask.key[i]);
    }
    return hash;
}

static bool key_matches(const Hot *h, const HotPath *p)
{
    const uint8_t *key = h->m.frame + h->c->key_at;
    uint64_t differs = 0, x;
    for (uint32_t i = 0; i < h->c->key / 8; i++) {
        memcpy(&x, key + 8 * i, 8);
        differs |= (x & h->mask.key[i]) ^ p->key[i];
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
    h->mask.key = pool_array(h->c->pool, h->c->key / 8, sizeof *h->mask.key);
    h->mask.out = pool_array(h->c->pool, h->c->nout, sizeof *h->mask.out);
    h->m.out = pool_array(h->c->pool, h->c->nout, sizeof *h->m.out);
    h->samples = hot_samples_new(h->c);
    h->fresh = 0;
    h->stride = FIRST_STRIDE, h->until = 1;
    h->chosen = false;
    to_frame(h);
    return (h->general = hot_path_make(h->c, h->arena, NULL)) != NULL;
}

Hot *hot_new(Slice *s, uint8_t *state, bool eager)
{
    Hot *h = xrealloc(NULL, sizeof *h);
    *h = (Hot){.s = s, .m = {.state = state}, .batch = eager ? 32 : 1024, .often = eager ? 2 : 24, .window = eager ? 64 : 4096};
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

/* ---- what the general path saw ---- */
static void add_path(Hot *h, uint64_t hash)
{
    HotGuards g = {(const uint8_t *)h->mask.key, h->m.frame + h->c->key_at, h->mask.out, h->m.out};
    h->full = hot_arena_bytes(h->arena) > MOST_CODE;
    HotPath *p = h->full ? NULL : hot_path_make(h->c, h->arena, &g);
    if (!p) return;
    p->chain = h->bucket[hash % BUCKETS];
    h->bucket[hash % BUCKETS] = p;
    h->report.paths++;
    h->window_paths++;
}

/* `hash` is where its path would be; with all that was read it makes the combination that is counted. */
static void observe(Hot *h, uint64_t hash)
{
    uint64_t all = hash;
    for (uint32_t w = 0; w < h->c->nout; w++) all = hot_mix(all, h->m.out[w] & h->mask.out[w]);
    Counter *n = &h->counter[all % COUNTERS];
    if (n->hash != all) *n = (Counter){all, 0};
    if (++n->n == h->often) add_path(h, hash);
}

/* All begin anew: under other guards, or because those of which a run has had enough lie beside those that it needs now. */
static void make_room(Hot *h)
{
    drop_paths(h);
    h->full = false;
    h->general = hot_path_make(h->c, h->arena, NULL);
}

/* ---- looking back ---- */
/* At odd distances, since a loop is not seen whole at even ones. */
static void sample(Hot *h)
{
    if (--h->until) return;
    h->random = hot_mix(h->random + 1, 0);
    h->until = 1 + (uint32_t)(h->random >> 32) % (2 * h->stride - 1);
    h->fresh++;
    hot_sample(h->samples, h->m.frame + h->c->key_at, h->m.out);
}

static void find_ahead(Hot *h)
{
    h->ahead = 0;
    for (uint32_t l = 0; l < h->c->nlayers && !h->ahead; l++)
        for (uint32_t w = 0; w < h->c->layer[l].nout; w++)
            if (h->mask.out[h->c->layer[l].first_out + w]) h->ahead = l + 1;
}

static void choose(Hot *h)
{
    bool first = !h->chosen;
    if (hot_choose(h->samples, &h->mask, first) && !first) make_room(h);
    find_ahead(h);
    h->chosen = true;
    h->fresh = 0;
    if (h->stride < MOST_STRIDE) h->stride *= 4;
}

/* Too many tokens had no path, and not because paths are being made: what guards cost is looked at soon. */
static void end_window(Hot *h)
{
    uint32_t n = h->window_general;
    if (n > h->window_tokens / 2 && n > 2 * h->often * h->window_paths) h->stride = FIRST_STRIDE, h->until = 1;
    h->poor = n > h->window_tokens / 2 ? h->poor + 1 : h->poor ? h->poor - 1 : 0;
    h->window_general = h->window_tokens = h->window_paths = 0;
}

/* ---- a token ---- */
/* Code comes from far away when a run has many paths: the next one's is asked for while this one runs. */
static void ask_for(const HotPath *p)
{
    const char *at = (const char *)p->text;
    for (size_t i = 0; i < p->bytes; i += 64) __builtin_prefetch(at + i, 0, 2);
}

/* Its first n layers, up to their cells; what was written is put back where it is not HOT_FINE. */
static HotResult run_layers(Hot *h, const HotPath *p, uint32_t n)
{
    h->m.undo.n = 0;
    for (uint32_t l = 0; l < n; l++) {
        if (p->code[l]) p->code[l](h->m.frame);
        HotResult r = hot_cells(&h->c->layer[l], &p->access[l], &h->m);
        if (r == HOT_FINE) continue;
        hot_undo(&h->m);
        return r;
    }
    return HOT_FINE;
}

static HotResult run_path(Hot *h, const HotPath *p)
{
    const HotChip *c = h->c;
    if (p->next) ask_for(p->next);
    HotResult r = run_layers(h, p, c->nlayers);
    if (r != HOT_FINE) return r;
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
    sample(h);
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

/* By what paths are found: the key and what is read at the first layer whose reads are guards. That comes early, and the code up to there is short even
 * without guards, while many paths differ in nothing before. */
static uint64_t place_hash(Hot *h)
{
    uint64_t hash = key_hash(h);
    if (!h->ahead) return hash;
    const HotLayer *l = &h->c->layer[h->ahead - 1];
    run_layers(h, h->general, h->ahead);
    hot_undo(&h->m);
    for (uint32_t w = l->first_out; w < l->first_out + l->nout; w++) hash = hot_mix(hash, h->m.out[w] & h->mask.out[w]);
    return hash;
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
    if (++h->window_tokens >= h->window) end_window(h);
    if (h->fresh >= h->batch) choose(h);
    if (h->full) make_room(h);
    if (!h->general || h->poor > MOST_POOR) return false;
    put_token(h, token);
    h->report.tokens++;
    HotPath *p = h->last ? h->last->next : NULL;
    if (!p || !key_matches(h, p) || run_path(h, p) != HOT_FINE) {
        uint64_t hash = h->chosen ? place_hash(h) : 0;
        p = h->chosen ? known_path(h, hash) : NULL;
        if (!p) {
            h->report.general++;
            h->window_general++;
            if (run_path(h, h->general) != HOT_FINE) return slow_token(h, out);
            if (h->chosen) observe(h, hash);
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
