/* ands.c: which of many ANDs of literals are on. A form is an AND when any wrong literal turns it off; then its value is a
 * constant. Two ways of finding those that are on, after what the forms have in common:
 *   decoder  many forms over the same channels (an address): one look-up in a table by the bits of those channels
 *   index    all others: channels are taken in groups of GROUP, and for every value of a group a row of bits says which of a block of BLOCK
 *            forms it turns off. A token ORs one row for each group that the block uses, those first that most of its forms use. Forms
 *            are sorted so that those with the same conditions stand together, and many blocks are all off after the FIRST rows, which
 *            are ORed for all blocks together, without a decision.
 * A form of which a channel is neither 0 nor 1 is computed as a sum, for that token. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { NO_FORM = 0xffffffff, MAX_DECODER = 12, MIN_DECODER = 128, GROUP = 4, VALUES = 1 << GROUP, BLOCK = 64, FIRST = 2 };

/* The index into the table: the channels' bits, those of later words lower. */
typedef struct {
    uint32_t word, bits;
    uint64_t mask;
} Bits;
typedef struct {
    uint32_t nbits;
    Bits bits[MAX_DECODER];
    uint32_t *table; /* [2^channels] form, or NO_FORM */
} Decoder;

/* A group in a block: rows[row + value] are the forms that the value turns off. */
typedef struct {
    uint32_t group, row;
} Step;
typedef struct {
    uint32_t first, last; /* steps; at least FIRST */
    uint64_t out;         /* forms that are not looked for: those beyond the last, and strange ones */
} AndBlock;
/* What the caller gets for a form. */
typedef struct {
    uint32_t name;
    float value;
} Hit;
/* Channels of one word of the stream that some form in the index uses: groups from `group` on. */
typedef struct {
    uint32_t word, group, groups;
    uint64_t mask;
} KeyWord;

struct Ands {
    Forms forms;
    Pool *pool;
    uint32_t channels, words;
    bool zero_is_off;
    uint32_t *name; /* [forms] the caller's number */
    float *value;   /* [forms] when on */
    bool *decoded;  /* [forms] */
    uint32_t **literals; /* [forms] channel * 2 + negated, by channel */
    uint32_t *nliterals; /* [forms] */
    VEC(Decoder) decoder;
    uint64_t *used;      /* [words] channels of all forms */
    uint32_t nused, *used_word;
    uint32_t *shared;    /* [channels] forms that use it */
    uint32_t nkeys, ngroups, nblocks;
    KeyWord *key;        /* [nkeys] */
    uint8_t *group;      /* [ngroups, rounded up] scratch: its value */
    AndBlock *block;     /* [nblocks] */
    VEC(Step) step;
    VEC(uint64_t) rows;
    uint64_t *off;       /* [nblocks] scratch: forms that are off */
    uint32_t *form;      /* [nblocks * BLOCK] the index's order */
    Hit *hit;            /* [nblocks * BLOCK] */
    uint32_t *place;     /* [forms] in the index */
    bool *strange;       /* [forms] computed as sums in this token */
    uint32_t nstrange, *strange_list;
    Lists by_channel;    /* forms that use a channel; made when one is first found to be no bit */
};

Ands *ands_new(Pool *p, uint32_t channels, uint32_t most, bool zero_is_off)
{
    Ands *a = pool_alloc(p, sizeof *a);
    *a = (Ands){.pool = p, .channels = channels, .words = channels / 64 + 1, .zero_is_off = zero_is_off};
    forms_init(&a->forms);
    a->name = pool_array(p, most, sizeof *a->name);
    a->value = pool_array(p, most, sizeof *a->value);
    a->decoded = pool_array(p, most, sizeof *a->decoded);
    a->literals = pool_array(p, most, sizeof *a->literals);
    a->nliterals = pool_array(p, most, sizeof *a->nliterals);
    a->used = pool_array(p, a->words, sizeof *a->used);
    a->used_word = pool_array(p, a->words, sizeof *a->used_word);
    a->shared = pool_array(p, channels, sizeof *a->shared);
    a->strange = pool_array(p, most, sizeof *a->strange);
    a->strange_list = pool_array(p, most, sizeof *a->strange_list);
    return a;
}

/* The value with all literals right, and whether each wrong one turns the form off: to OFF_BELOW, or to 0 where that is
 * off and the next wrong one goes to OFF_BELOW. x and y are the smallest two weights. */
bool form_is_and(const Forms *f, uint32_t i, bool zero_is_off, float *value)
{
    float top = f->bias[i], x = INFINITY, y = INFINITY;
    bool each = true;
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) {
        float w = fabsf(f->e.data[k].w);
        if (f->e.data[k].w > 0) top += w;
        if (w < x) y = x, x = w;
        else if (w < y) y = w;
    }
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) each &= !gate_on(top - fabsf(f->e.data[k].w), zero_is_off);
    *value = top;
    return gate_on(top, zero_is_off) && each && !(top - x - y > OFF_BELOW);
}

bool ands_take(Ands *a, const Forms *f, uint32_t i, uint32_t name)
{
    uint32_t n = f->start[i + 1] - f->start[i], at = a->forms.n;
    if (n == 0 || !form_is_and(f, i, a->zero_is_off, &a->value[at])) return false;
    a->name[at] = name;
    a->literals[at] = pool_array(a->pool, n, sizeof **a->literals);
    a->nliterals[at] = n;
    for (uint32_t k = 0; k < n; k++) {
        const Entry *e = &f->e.data[f->start[i] + k];
        a->literals[at][k] = e->at * 2 + (e->w < 0);
        a->shared[e->at]++;
        a->used[e->at >> 6] |= 1ull << (e->at & 63);
    }
    forms_copy(&a->forms, f, i);
    return true;
}

/* ---- decoders ---- */
static _Thread_local const Ands *sorting; /* what the comparison functions below look at: qsort takes no context */

static int by_channels(const void *p, const void *q)
{
    uint32_t i = *(const uint32_t *)p, j = *(const uint32_t *)q, n = sorting->nliterals[i], m = sorting->nliterals[j];
    if (n != m) return n < m ? -1 : 1;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t x = sorting->literals[i][k] >> 1, y = sorting->literals[j][k] >> 1;
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

static int by_channels_then_number(const void *p, const void *q)
{
    uint32_t i = *(const uint32_t *)p, j = *(const uint32_t *)q;
    int c = by_channels(p, q);
    return c ? c : i < j ? -1 : i > j;
}

/* The bits of a form's literals, in the order of the decoder's index. */
static uint32_t pattern(const Ands *a, uint32_t form)
{
    uint32_t bits = 0, n = a->nliterals[form];
    const uint32_t *lit = a->literals[form];
    for (uint32_t k = 0, end; k < n; k = end) {
        for (end = k; end < n && lit[end] >> 7 == lit[k] >> 7; end++) {}
        bits <<= end - k;
        for (uint32_t i = k; i < end; i++) bits |= (uint32_t)!(lit[i] & 1) << (i - k);
    }
    return bits;
}

static void add_decoder(Ands *a, const uint32_t *form, uint32_t count)
{
    uint32_t n = a->nliterals[form[0]];
    const uint32_t *lit = a->literals[form[0]];
    if (count < MIN_DECODER || n > MAX_DECODER) return;
    Decoder d = {.table = pool_array(a->pool, (size_t)1 << n, sizeof *d.table)};
    memset(d.table, 0xff, (sizeof *d.table) << n);
    for (uint32_t k = 0; k < n; k++) { /* literals are in order of channel */
        uint32_t c = lit[k] >> 1;
        if (d.nbits == 0 || d.bits[d.nbits - 1].word != c >> 6) d.bits[d.nbits++] = (Bits){c >> 6, 0, 0};
        d.bits[d.nbits - 1].mask |= 1ull << (c & 63);
        d.bits[d.nbits - 1].bits++;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *at = &d.table[pattern(a, form[i])];
        if (*at != NO_FORM) continue; /* a second form for the same bits goes into the trie */
        *at = form[i];
        a->decoded[form[i]] = true;
    }
    vec_push(&a->decoder, d);
}

static void find_decoders(Ands *a, uint32_t *order)
{
    uint32_t n = a->forms.n;
    sorting = a;
    if (n) qsort(order, n, sizeof *order, by_channels_then_number);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_channels(&order[i], &order[end]) == 0; end++) {}
        add_decoder(a, order + i, end - i);
    }
}

/* ---- index ---- */
/* Literals that many forms have come first. */
static int by_share(const void *p, const void *q)
{
    uint32_t x = *(const uint32_t *)p, y = *(const uint32_t *)q, u = sorting->shared[x >> 1], v = sorting->shared[y >> 1];
    if (u != v) return u > v ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Neighbours share literals: forms in order of the one that most others have, then of the next. */
static int by_literals(const void *p, const void *q)
{
    uint32_t i = *(const uint32_t *)p, j = *(const uint32_t *)q, n = sorting->nliterals[i], m = sorting->nliterals[j];
    for (uint32_t k = 0; k < n && k < m; k++) {
        int c = by_share(&sorting->literals[i][k], &sorting->literals[j][k]);
        if (c) return c;
    }
    if (n != m) return n < m ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void order_forms(Ands *a)
{
    uint32_t n = 0, *form = xrealloc(NULL, (a->forms.n + 1) * sizeof *form);
    sorting = a;
    for (uint32_t i = 0; i < a->forms.n; i++) {
        if (a->decoded[i]) continue;
        qsort(a->literals[i], a->nliterals[i], sizeof **a->literals, by_share);
        form[n++] = i;
    }
    if (n) qsort(form, n, sizeof *form, by_literals);
    a->nblocks = (n + BLOCK - 1) / BLOCK;
    a->form = pool_array(a->pool, (size_t)a->nblocks * BLOCK, sizeof *a->form);
    a->place = pool_array(a->pool, a->forms.n, sizeof *a->place);
    a->hit = pool_array(a->pool, (size_t)a->nblocks * BLOCK, sizeof *a->hit);
    a->off = pool_array(a->pool, a->nblocks, sizeof *a->off);
    a->block = pool_array(a->pool, a->nblocks, sizeof *a->block);
    for (uint32_t k = 0; k < a->nblocks * BLOCK; k++) {
        a->form[k] = k < n ? form[k] : NO_FORM;
        if (k < n) {
            a->place[form[k]] = k;
            a->hit[k] = (Hit){a->name[form[k]], a->value[form[k]]};
        } else a->block[k / BLOCK].out |= 1ull << k % BLOCK;
    }
    free(form);
}

/* Groups of the channels that the index uses, word by word; slot[channel] = group * GROUP + bit. */
static void make_groups(Ands *a, uint32_t *slot)
{
    uint64_t *used = xrealloc(NULL, a->words * sizeof *used);
    memset(used, 0, a->words * sizeof *used);
    for (uint32_t k = 0; k < a->nblocks * BLOCK && a->form[k] != NO_FORM; k++)
        for (uint32_t i = 0; i < a->nliterals[a->form[k]]; i++) {
            uint32_t c = a->literals[a->form[k]][i] >> 1;
            used[c >> 6] |= 1ull << (c & 63);
        }
    a->key = pool_array(a->pool, a->words, sizeof *a->key);
    for (uint32_t w = 0; w < a->words; w++) {
        uint32_t n = (uint32_t)__builtin_popcountll(used[w]), k = 0;
        if (!n) continue;
        a->key[a->nkeys++] = (KeyWord){w, a->ngroups, (n + GROUP - 1) / GROUP, used[w]};
        for (uint64_t m = used[w]; m; m &= m - 1) slot[w * 64 + (uint32_t)__builtin_ctzll(m)] = a->ngroups * GROUP + k++;
        a->ngroups += (n + GROUP - 1) / GROUP;
    }
    a->group = pool_array(a->pool, a->ngroups + 64 / GROUP, sizeof *a->group);
    free(used);
}

typedef struct {
    uint32_t group, forms;
    uint64_t row[VALUES];
} NewStep;

static int by_forms(const void *p, const void *q)
{
    const NewStep *x = p, *y = q;
    if (x->forms != y->forms) return x->forms > y->forms ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

/* Form k of a block is turned off by every value of the group in which the literal's bit is wrong. */
static void mark_literal(NewStep *s, uint32_t k, uint32_t bit, bool negated)
{
    s->forms++;
    for (uint32_t v = 0; v < VALUES; v++)
        if ((v >> bit & 1) == negated) s->row[v] |= 1ull << k;
}

/* at[group] is its step plus 1, 0 between calls. */
static void make_block(Ands *a, uint32_t b, const uint32_t *slot, uint32_t *at)
{
    VEC(NewStep) list = {0};
    for (uint32_t k = 0; k < BLOCK && a->form[b * BLOCK + k] != NO_FORM; k++) {
        uint32_t f = a->form[b * BLOCK + k];
        for (uint32_t i = 0; i < a->nliterals[f]; i++) {
            uint32_t place = slot[a->literals[f][i] >> 1], group = place / GROUP;
            if (!at[group]) at[group] = vec_push(&list, (NewStep){.group = group}) + 1;
            mark_literal(&list.data[at[group] - 1], k, place % GROUP, a->literals[f][i] & 1);
        }
    }
    qsort(list.data, list.n, sizeof *list.data, by_forms);
    a->block[b].first = a->step.n;
    for (uint32_t i = 0; i < list.n; i++) {
        at[list.data[i].group] = 0;
        vec_push(&a->step, ((Step){list.data[i].group, a->rows.n}));
        for (uint32_t v = 0; v < VALUES; v++) vec_push(&a->rows, list.data[i].row[v]);
    }
    while (a->step.n < a->block[b].first + FIRST) vec_push(&a->step, a->step.data[a->block[b].first]);
    a->block[b].last = a->step.n;
    free(list.data);
}

void ands_finish(Ands *a)
{
    uint32_t *order = xrealloc(NULL, (a->forms.n + 1) * sizeof *order), *slot = xrealloc(NULL, a->words * 64 * sizeof *slot);
    for (uint32_t i = 0; i < a->forms.n; i++) order[i] = i;
    find_decoders(a, order);
    for (uint32_t w = 0; w < a->words; w++)
        if (a->used[w]) a->used_word[a->nused++] = w;
    order_forms(a);
    make_groups(a, slot);
    uint32_t *at = xrealloc(NULL, (a->ngroups + 1) * sizeof *at);
    memset(at, 0, (a->ngroups + 1) * sizeof *at);
    for (uint32_t b = 0; b < a->nblocks; b++) make_block(a, b, slot, at);
    free(at);
    free(slot);
    free(order);
}

/* ---- one token ---- */
static inline uint32_t put(const Ands *a, uint32_t form, uint32_t n, uint32_t *on, float *value)
{
    on[n] = a->name[form];
    value[n] = a->value[form];
    return n + 1;
}

static inline uint64_t row_of(const Ands *a, const Step *s) { return a->rows.data[s->row + a->group[s->group]]; }

/* Defined twice: with and without the instructions that gather bits. `spread` puts 8 groups of the low bits of its argument into 8 bytes. */
#define DEFINE_FIND(which, attribute, gather, spread)                                                                        \
    attribute static uint32_t which(const Ands *a, const uint64_t *live, uint32_t n, uint32_t *on, float *value)             \
    {                                                                                                                        \
        for (uint32_t i = 0; i < a->nkeys; i++) {                                                                            \
            const KeyWord *k = &a->key[i];                                                                                   \
            uint64_t bits = gather(live[k->word], k->mask);                                                                  \
            for (uint32_t g = 0; g < k->groups; g += 8, bits >>= 8 * GROUP) {                                                \
                uint64_t eight = spread(bits);                                                                               \
                memcpy(a->group + k->group + g, &eight, sizeof eight);                                                       \
            }                                                                                                                \
        }                                                                                                                    \
        for (uint32_t b = 0; b < a->nblocks; b++) {                                                                          \
            const Step *s = a->step.data + a->block[b].first;                                                                \
            uint64_t off = a->block[b].out;                                                                                  \
            for (uint32_t i = 0; i < FIRST; i++) off |= row_of(a, s + i);                                                    \
            a->off[b] = off;                                                                                                 \
        }                                                                                                                    \
        for (uint32_t b = 0; b < a->nblocks; b++) {                                                                          \
            uint64_t off = a->off[b];                                                                                        \
            if (!~off) continue;                                                                                             \
            const Step *s = a->step.data + a->block[b].first + FIRST, *end = a->step.data + a->block[b].last;                \
            for (; s < end; s++) off |= row_of(a, s);                                                                        \
            for (uint64_t left = ~off; left; left &= left - 1) {                                                             \
                Hit h = a->hit[b * BLOCK + (uint32_t)__builtin_ctzll(left)];                                                 \
                on[n] = h.name;                                                                                              \
                value[n++] = h.value;                                                                                        \
            }                                                                                                                \
        }                                                                                                                    \
        for (uint32_t k = 0; k < a->decoder.n; k++) {                                                                        \
            const Decoder *d = &a->decoder.data[k];                                                                          \
            uint32_t index = 0;                                                                                              \
            for (uint32_t i = 0; i < d->nbits; i++)                                                                          \
                index = index << d->bits[i].bits | (uint32_t)gather(live[d->bits[i].word], d->bits[i].mask);                 \
            if (d->table[index] != NO_FORM && !a->strange[d->table[index]]) n = put(a, d->table[index], n, on, value);       \
        }                                                                                                                    \
        return n;                                                                                                            \
    }

static inline uint64_t spread_plain(uint64_t bits)
{
    uint8_t byte[8];
    uint64_t out;
    for (uint32_t i = 0; i < 8; i++) byte[i] = (uint8_t)(bits >> i * GROUP & (VALUES - 1));
    memcpy(&out, byte, sizeof out);
    return out;
}
DEFINE_FIND(find_plain, , gather_bits, spread_plain)
#if defined(__x86_64__)
#define SPREAD(bits) _pdep_u64(bits, 0x0f0f0f0f0f0f0f0full)
DEFINE_FIND(find_bmi2, __attribute__((target("bmi,bmi2"))), _pext_u64, SPREAD)
#endif

static uint32_t find(const Ands *a, const uint64_t *live, uint32_t n, uint32_t *on, float *value)
{
#if defined(__x86_64__)
    if (simd) return find_bmi2(a, live, n, on, value);
#endif
    return find_plain(a, live, n, on, value);
}

/* ---- channels that are no bits ---- */
static void make_by_channel(Ands *a)
{
    const Forms *f = &a->forms;
    uint32_t *at = pool_array(a->pool, (size_t)a->channels + 2, sizeof *at);
    a->by_channel = (Lists){at++, pool_array(a->pool, f->e.n, sizeof *a->by_channel.item)};
    for (uint32_t k = 0; k < f->e.n; k++) at[f->e.data[k].at + 1]++;
    for (uint32_t c = 0; c < a->channels; c++) at[c + 1] += at[c];
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) a->by_channel.item[at[f->e.data[k].at]++] = i;
}

static void set_strange(Ands *a, uint32_t form, bool strange)
{
    uint32_t k = a->place[form];
    a->strange[form] = strange;
    if (!a->decoded[form]) a->block[k / BLOCK].out ^= 1ull << k % BLOCK;
}

/* The forms of a channel that is no bit: computed, and left out of what is looked for. */
static uint32_t compute_forms(Ands *a, uint32_t channel, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    if (!a->by_channel.start) make_by_channel(a);
    for (uint32_t k = a->by_channel.start[channel]; k < a->by_channel.start[channel + 1]; k++) {
        uint32_t i = a->by_channel.item[k];
        if (a->strange[i]) continue;
        a->strange_list[a->nstrange++] = i;
        set_strange(a, i, true);
        float v = form_value(&a->forms, i, s->x);
        if (!gate_on(v, a->zero_is_off)) continue;
        on[n] = a->name[i];
        value[n++] = v;
    }
    return n;
}

uint32_t ands_eval(Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    if (a->forms.n == 0) return n;
    for (uint32_t i = 0; i < a->nused; i++) {
        uint32_t w = a->used_word[i];
        for (uint64_t odd = s->odd[w] & a->used[w]; odd; odd &= odd - 1) n = compute_forms(a, w * 64 + (uint32_t)__builtin_ctzll(odd), s, n, on, value);
    }
    n = find(a, s->live, n, on, value);
    while (a->nstrange) set_strange(a, a->strange_list[--a->nstrange], false);
    return n;
}

void ands_close(Ands *a)
{
    if (!a) return;
    forms_free(&a->forms);
    free(a->decoder.data);
    free(a->step.data);
    free(a->rows.data);
}
