/* hot_choose.c: which bits are guards, chosen by cost from a sample of the run's tokens.
 *
 * The guards divide the samples into classes, each of which wants a path. What they cost is, in operations a token: those that are left of the logic when
 * they are known (hot_path_size, for a few of the samples); for each token without a path, all operations; and the making of a path for each class. How many
 * tokens will have no path is estimated as Good and Turing did: as many as there are classes of one sample. (That classes have many samples says less: code
 * that comes again once in some thousand tokens deserves its paths too. But data is a new class nearly every time.)
 *
 * A candidate must lower the cost clearly. */
#include "hot.h"
#include <stdlib.h>

enum {
    SAMPLES = 4096,        /* of the last four choices, so that what one phase of a run keeps constant and another does not is no guard */
    CLASSES = 4 * SAMPLES, /* of a hash table of them */
    SIZED = 4,             /* samples whose operations are counted */
    PER_PATH = 10000       /* tokens over which a path must earn one token without: making one takes as long as 100, and a run is taken to last for a million */
};

struct HotSamples {
    HotChip *c;
    uint8_t *key;  /* [SAMPLES][key] */
    uint64_t *out; /* [SAMPLES][nout] */
    uint32_t n, at, all; /* kept; where the next one goes; operations without guards, once they are counted */
    double promised;     /* what the guards cost when they were chosen */
};

HotSamples *hot_samples_new(HotChip *c)
{
    HotSamples *s = pool_alloc(c->pool, sizeof *s);
    s->c = c;
    s->key = pool_array(c->pool, SAMPLES, c->key);
    s->out = pool_array(c->pool, (size_t)SAMPLES * c->nout, sizeof *s->out);
    return s;
}

void hot_sample(HotSamples *s, const uint8_t *key, const uint64_t *out)
{
    memcpy(s->key + (size_t)s->at * s->c->key, key, s->c->key);
    memcpy(s->out + (size_t)s->at * s->c->nout, out, s->c->nout * sizeof *out);
    s->at = (s->at + 1) % SAMPLES; /* the oldest go */
    if (s->n < SAMPLES) s->n++;
}

/* ---- what guards cost ---- */
typedef struct {
    HotSamples *s;
    HotMask mask;
    uint8_t *varies;         /* [key] whether samples differ there */
    uint64_t *class;         /* [n] by the guards so far */
    uint64_t *trial, *value; /* value, count: [CLASSES] a hash table */
    uint32_t *count;
    double cost; /* of the guards so far; below 0: not known yet */
} Chooser;

/* What paths cost beside what is in them, and the share of tokens that have one. */
static double beside(Chooser *ch, const uint64_t *class, double *share)
{
    uint32_t n = ch->s->n, alone = 0, classes = 0;
    memset(ch->count, 0, CLASSES * sizeof *ch->count);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t v = class[i];
        uint32_t at = (uint32_t)(v ^ v >> 32) % CLASSES;
        while (ch->count[at] && ch->value[at] != v) at = (at + 1) % CLASSES;
        ch->value[at] = v;
        uint32_t times = ++ch->count[at];
        if (times == 1) classes++, alone++;
        else if (times == 2) alone--;
    }
    *share = 1 - (double)alone / n;
    return ch->s->all * ((double)alone / n + (double)classes / PER_PATH);
}

static double mean_size(const Chooser *ch)
{
    const HotSamples *s = ch->s;
    double sum = 0;
    for (uint32_t i = 0; i < SIZED; i++) {
        size_t at = (size_t)s->n * (2 * i + 1) / (2 * SIZED);
        HotGuards g = {(const uint8_t *)ch->mask.key, s->key + at * s->c->key, ch->mask.out, s->out + at * s->c->nout};
        sum += hot_path_size(s->c, &g);
    }
    return sum / SIZED;
}

/* By less the samples may err. */
static bool better(double cost, double than) { return cost < than * 7 / 8; }

static double cost_of(Chooser *ch)
{
    if (ch->cost >= 0) return ch->cost;
    double share, rest = beside(ch, ch->class, &share);
    return ch->cost = rest + share * mean_size(ch);
}

/* ---- candidates ---- */
/* Bits of the key, or of a word that is read. */
typedef struct {
    bool read;
    uint32_t first, n; /* read: first is the word */
    uint64_t bits;
} Candidate;

static void divide(const Chooser *ch, const Candidate *x, uint64_t *class)
{
    const HotSamples *s = ch->s;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint8_t *key = s->key + (size_t)i * s->c->key;
        class[i] = ch->class[i];
        if (x->read) class[i] = hot_mix(class[i], s->out[(size_t)i * s->c->nout + x->first] & x->bits);
        else
            for (uint32_t k = x->first; k < x->first + x->n; k++) class[i] = hot_mix(class[i], key[k] & 1);
    }
}

static void set_guards(Chooser *ch, const Candidate *x, bool on)
{
    if (!x->read) memset((uint8_t *)ch->mask.key + x->first, on, x->n);
    else if (on) ch->mask.out[x->first] |= x->bits;
    else ch->mask.out[x->first] &= ~x->bits;
}

/* Makes the candidate a guard when that is clearly worth its classes. */
static void consider(Chooser *ch, Candidate x)
{
    double share;
    divide(ch, &x, ch->trial);
    double rest = beside(ch, ch->trial, &share);
    if (!better(rest, cost_of(ch))) return; /* whatever it leaves out */
    set_guards(ch, &x, true);
    double cost = rest + share * mean_size(ch);
    if (!better(cost, ch->cost)) {
        set_guards(ch, &x, false);
        return;
    }
    uint64_t *t = ch->class;
    ch->class = ch->trial, ch->trial = t;
    ch->cost = cost;
}

/* A guard whatever it costs. */
static void insist(Chooser *ch, Candidate x)
{
    divide(ch, &x, ch->class);
    set_guards(ch, &x, true);
    ch->cost = -1;
}

/* The token's kind is one in any case. Then what is read, field by field: what was fetched decides most; then the payload. Of what else is there before a
 * token the bits that do not vary; those that do are mostly the program counter's, which leave out little, and are different wherever the same is fetched. */
static void consider_all(Chooser *ch)
{
    const HotChip *c = ch->s->c;
    insist(ch, (Candidate){.n = c->s->kind_bits});
    for (uint32_t k = c->token_bits; k < c->key; k++)
        if (c->slot_at[k] != HOT_NONE && !ch->varies[k]) set_guards(ch, &(Candidate){.first = k, .n = 1}, true);
    for (uint32_t l = 0; l < c->nlayers; l++) {
        const SliceDelta *d = c->layer[l].delta;
        for (uint32_t g = 0; g < d->groups.n; g++) {
            Field f = d->groups.data[g].field;
            if (!d->groups.data[g].bit) consider(ch, (Candidate){true, c->layer[l].first_out + f.word, 0, mask64(f.bits) << f.shift});
        }
    }
    consider(ch, (Candidate){.first = c->s->kind_bits, .n = c->s->payload_bits});
}

/* ---- choosing ---- */
static void begin(Chooser *ch)
{
    const HotChip *c = ch->s->c;
    memset(ch->class, 0, ch->s->n * sizeof *ch->class);
    memset(ch->mask.key, 0, c->key);
    memset(ch->mask.out, 0, c->nout * sizeof *ch->mask.out);
    ch->cost = -1;
}

/* What the guards that there are cost for these samples. */
static double cost_now(Chooser *ch, const HotMask *mask)
{
    const HotChip *c = ch->s->c;
    const uint8_t *key = (const uint8_t *)mask->key;
    for (uint32_t k = 0; k < c->key; k++)
        if (key[k] && ch->varies[k]) divide(ch, &(Candidate){.first = k, .n = 1}, ch->class);
    for (uint32_t w = 0; w < c->nout; w++)
        if (mask->out[w]) divide(ch, &(Candidate){true, w, 0, mask->out[w]}, ch->class);
    memcpy(ch->mask.key, mask->key, c->key);
    memcpy(ch->mask.out, mask->out, c->nout * sizeof *mask->out);
    return cost_of(ch);
}

static void find_varying(Chooser *ch)
{
    const HotSamples *s = ch->s;
    for (uint32_t i = 1; i < s->n; i++)
        for (uint32_t k = 0; k < s->c->key; k++) ch->varies[k] |= (s->key[(size_t)i * s->c->key + k] ^ s->key[k]) & 1;
}

/* Guards that are about as good as they promised to be, and leave out most, may stay without a look at others. */
static bool good(const HotSamples *s, double now) { return now < s->promised * 5 / 4 && now < s->all / 4.0; }

/* Takes the guards that the samples want; only clearly better ones where there are some, since all paths must be made anew. */
static bool choose(Chooser *ch, HotMask *mask, bool anew)
{
    HotSamples *s = ch->s;
    if (!s->all) s->all = hot_path_size(s->c, NULL);
    find_varying(ch);
    begin(ch);
    double now = anew ? 0 : cost_now(ch, mask);
    if (!anew && good(s, now)) return false;
    begin(ch);
    consider_all(ch);
    bool take = anew || better(cost_of(ch), now);
    s->promised = take ? cost_of(ch) : now;
    if (!take) return false;
    memcpy(mask->key, ch->mask.key, s->c->key);
    memcpy(mask->out, ch->mask.out, s->c->nout * sizeof *ch->mask.out);
    return true;
}

bool hot_choose(HotSamples *s, HotMask *mask, bool anew)
{
    Pool *p = pool_new();
    Chooser ch = {.s = s};
    ch.mask = (HotMask){pool_array(p, s->c->key / 8, sizeof *ch.mask.key), pool_array(p, s->c->nout, sizeof *ch.mask.out)};
    ch.varies = pool_array(p, s->c->key, 1);
    ch.class = pool_array(p, s->n, sizeof *ch.class), ch.trial = pool_array(p, s->n, sizeof *ch.trial);
    ch.value = pool_array(p, CLASSES, sizeof *ch.value), ch.count = pool_array(p, CLASSES, sizeof *ch.count);
    bool chosen = choose(&ch, mask, anew);
    pool_free(p);
    return chosen;
}
