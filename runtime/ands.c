/* ands.c: which of many ANDs of literals are on. A form is an AND when any wrong literal turns it off; then its value is a
 * constant. Two ways of finding those that are on, after what the forms have in common:
 *   decoder  forms over the same channels (an address): one look-up in a table by the bits of those channels
 *   trie     all others: a form's literals in order of how seldom they hold; only branches that hold are walked, and a
 *            node's branches on one word of the stream are found by one mask
 * How seldom a literal holds is counted during the first LEARN tokens, then the trie is built again.
 * When a channel that some form uses is neither 0 nor 1 all forms are computed as sums, for that token. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { NO_FORM = 0xffffffff, MAX_DECODER = 12, MIN_DECODER = 4, LEARN = 512 };

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

typedef struct {
    uint32_t word;
    uint64_t mask, want;
} Test;
/* A form at a node: on when the tests of its other literals hold. */
typedef struct {
    uint32_t form, first, last;
} Leaf;
/* Branches of a node on one word: those of mask whose bit, flipped or not, is 1; branch i goes to node child + i. */
typedef struct {
    uint32_t word, child;
    uint64_t mask, flip;
} Branch;
typedef struct {
    uint32_t leaf, leaf_end, branch, branch_end;
} TrieNode;

struct Ands {
    Forms forms;
    Pool *pool;
    uint32_t channels, words;
    bool zero_is_off;
    uint32_t *name; /* [forms] the caller's number */
    float *value;   /* [forms] when on */
    bool *decoded;  /* [forms] */
    VEC(Decoder) decoder;
    VEC(TrieNode) node;
    VEC(Leaf) leaf;
    VEC(Branch) branch;
    VEC(Test) test;
    uint32_t **literals; /* [forms] channel * 2 + negated; by channel at first, then rarest first */
    uint32_t *nliterals; /* [forms] */
    uint32_t *stack;     /* scratch for walking */
    uint32_t nused, *used_word;
    uint64_t *used;      /* [words] */
    uint32_t *seen, learned; /* how often each channel was 1 in the calls so far */
    uint32_t *shared;        /* [2 channels] forms with the literal */
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
    a->seen = pool_array(p, channels, sizeof *a->seen);
    a->shared = pool_array(p, 2 * (size_t)channels, sizeof *a->shared);
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
        a->shared[a->literals[at][k]]++;
        a->used[e->at >> 6] |= 1ull << (e->at & 63);
    }
    forms_copy(&a->forms, f, i);
    return true;
}

/* ---- decoders ---- */
static const Ands *sorting; /* what the comparison functions below look at: qsort takes no context */

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

/* ---- trie ---- */
/* How often the literal holds, in tokens of the learning phase; a guess of 1 in 4 channels being 1 before it. */
static double frequency(const Ands *a, uint32_t literal)
{
    double one = (a->seen[literal >> 1] + 0.25) / (a->learned + 1.0);
    return literal & 1 ? 1 - one : one;
}

static int by_frequency(const void *p, const void *q)
{
    uint32_t x = *(const uint32_t *)p, y = *(const uint32_t *)q;
    double u = frequency(sorting, x), v = frequency(sorting, y);
    if (u != v) return u < v ? -1 : 1;
    if (sorting->shared[x] != sorting->shared[y]) return sorting->shared[x] > sorting->shared[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Branch order of a literal: by word, then polarity, then bit. */
static uint32_t branch_key(uint32_t literal)
{
    uint32_t c = literal >> 1;
    return (c >> 6) << 7 | (literal & 1) << 6 | (c & 63);
}

static uint32_t sorting_depth;
static int by_branch(const void *p, const void *q)
{
    uint32_t i = *(const uint32_t *)p, j = *(const uint32_t *)q;
    uint32_t x = branch_key(sorting->literals[i][sorting_depth]), y = branch_key(sorting->literals[j][sorting_depth]);
    if (x != y) return x < y ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void add_leaf(Ands *a, uint32_t form, uint32_t depth)
{
    Leaf l = {form, a->test.n, a->test.n};
    for (uint32_t k = depth; k < a->nliterals[form]; k++) {
        uint32_t c = a->literals[form][k] >> 1, t = l.first;
        while (t < a->test.n && a->test.data[t].word != c >> 6) t++;
        if (t == a->test.n) vec_push(&a->test, ((Test){c >> 6, 0, 0}));
        a->test.data[t].mask |= 1ull << (c & 63);
        if (!(a->literals[form][k] & 1)) a->test.data[t].want |= 1ull << (c & 63);
    }
    l.last = a->test.n;
    vec_push(&a->leaf, l);
}

static void fill_node(Ands *a, uint32_t node, uint32_t *form, uint32_t n, uint32_t depth);

static uint32_t same_literal(const Ands *a, const uint32_t *form, uint32_t n, uint32_t depth)
{
    uint32_t k = 1;
    while (k < n && a->literals[form[k]][depth] == a->literals[form[0]][depth]) k++;
    return k;
}

/* The branches on one word and polarity, which form[0] begins; returns how many forms they hold. */
static uint32_t add_branch(Ands *a, const uint32_t *form, uint32_t n, uint32_t depth)
{
    uint32_t first = a->literals[form[0]][depth], word = first >> 7, used = 0, children = 0;
    Branch b = {word, a->node.n, 0, first & 1 ? ~0ull : 0};
    while (used < n) {
        uint32_t lit = a->literals[form[used]][depth];
        if (lit >> 7 != word || (lit & 1) != (first & 1)) break;
        b.mask |= 1ull << (lit >> 1 & 63);
        used += same_literal(a, form + used, n - used, depth);
        children++;
    }
    for (uint32_t i = 0; i < children; i++) vec_push(&a->node, ((TrieNode){0}));
    vec_push(&a->branch, b);
    return used;
}

/* Forms in form[0 .. n) share their first `depth` literals. Few forms become leaves; the rest branch. */
static void fill_node(Ands *a, uint32_t node, uint32_t *form, uint32_t n, uint32_t depth)
{
    uint32_t keep = 0;
    TrieNode t = {a->leaf.n, 0, a->branch.n, 0};
    for (uint32_t i = 0; i < n; i++)
        if (n <= 2 || a->nliterals[form[i]] == depth) {
            uint32_t f = form[i];
            add_leaf(a, f, depth);
            form[i] = form[keep];
            form[keep++] = f;
        }
    t.leaf_end = a->leaf.n;
    form += keep, n -= keep;
    sorting_depth = depth;
    if (n) qsort(form, n, sizeof *form, by_branch);
    for (uint32_t i = 0; i < n;) i += add_branch(a, form + i, n - i, depth);
    t.branch_end = a->branch.n;
    a->node.data[node] = t;
    for (uint32_t b = t.branch, i = 0; b < t.branch_end; b++) {
        uint32_t child = a->branch.data[b].child;
        for (uint64_t m = a->branch.data[b].mask; m; m &= m - 1) {
            uint32_t k = same_literal(a, form + i, n - i, depth);
            fill_node(a, child++, form + i, k, depth + 1);
            i += k;
        }
    }
}

static void build_trie(Ands *a)
{
    uint32_t n = 0, *form = xrealloc(NULL, (a->forms.n + 1) * sizeof *form);
    a->node.n = a->leaf.n = a->branch.n = a->test.n = 0;
    sorting = a;
    for (uint32_t i = 0; i < a->forms.n; i++) {
        if (a->decoded[i]) continue;
        qsort(a->literals[i], a->nliterals[i], sizeof **a->literals, by_frequency);
        form[n++] = i;
    }
    vec_push(&a->node, ((TrieNode){0}));
    fill_node(a, 0, form, n, 0);
    a->stack = xrealloc(a->stack, a->node.n * sizeof *a->stack);
    free(form);
}

void ands_finish(Ands *a)
{
    uint32_t *order = xrealloc(NULL, (a->forms.n + 1) * sizeof *order);
    for (uint32_t i = 0; i < a->forms.n; i++) order[i] = i;
    find_decoders(a, order);
    free(order);
    for (uint32_t w = 0; w < a->words; w++)
        if (a->used[w]) a->used_word[a->nused++] = w;
    build_trie(a);
}

/* ---- one token ---- */
static inline __attribute__((always_inline)) bool holds(const Ands *a, const Leaf *l, const uint64_t *live)
{
    uint64_t wrong = 0;
    for (uint32_t t = l->first; t < l->last; t++) wrong |= (live[a->test.data[t].word] & a->test.data[t].mask) ^ a->test.data[t].want;
    return wrong == 0;
}

static inline uint32_t put(const Ands *a, uint32_t form, uint32_t n, uint32_t *on, float *value)
{
    on[n] = a->name[form];
    value[n] = a->value[form];
    return n + 1;
}

static inline __attribute__((always_inline)) uint32_t walk_trie(Ands *a, const uint64_t *live, uint32_t n, uint32_t *on, float *value)
{
    uint32_t depth = 0;
    if (a->leaf.n == 0) return n;
    for (uint32_t node = 0;; node = a->stack[--depth]) {
        const TrieNode *t = &a->node.data[node];
        for (uint32_t l = t->leaf; l < t->leaf_end; l++)
            if (holds(a, &a->leaf.data[l], live)) n = put(a, a->leaf.data[l].form, n, on, value);
        for (uint32_t k = t->branch; k < t->branch_end; k++) {
            const Branch *b = &a->branch.data[k];
            for (uint64_t hit = (live[b->word] ^ b->flip) & b->mask; hit; hit &= hit - 1)
                a->stack[depth++] = b->child + (uint32_t)__builtin_popcountll(b->mask & ((hit & -hit) - 1));
        }
        if (depth == 0) return n;
    }
}

/* Defined twice: with and without the instructions that gather and count bits. */
#define DEFINE_FIND(name, attribute, gather)                                                                              \
    attribute static uint32_t name(Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)                      \
    {                                                                                                                     \
        for (uint32_t k = 0; k < a->decoder.n; k++) {                                                                     \
            const Decoder *d = &a->decoder.data[k];                                                                       \
            uint32_t index = 0;                                                                                           \
            for (uint32_t i = 0; i < d->nbits; i++)                                                                       \
                index = index << d->bits[i].bits | (uint32_t)gather(s->live[d->bits[i].word], d->bits[i].mask);           \
            if (d->table[index] != NO_FORM) n = put(a, d->table[index], n, on, value);                                    \
        }                                                                                                                 \
        return walk_trie(a, s->live, n, on, value);                                                                       \
    }
DEFINE_FIND(find_plain, , gather_bits)
#if defined(__x86_64__)
DEFINE_FIND(find_bmi2, __attribute__((target("bmi,bmi2,popcnt"))), _pext_u64)
#endif

static uint32_t find(Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
#if defined(__x86_64__)
    if (simd) return find_bmi2(a, s, n, on, value);
#endif
    return find_plain(a, s, n, on, value);
}

static void learn(Ands *a, const uint64_t *live)
{
    for (uint32_t i = 0; i < a->nused; i++) {
        uint32_t w = a->used_word[i];
        for (uint64_t bits = live[w] & a->used[w]; bits; bits &= bits - 1) a->seen[w * 64 + (uint32_t)__builtin_ctzll(bits)]++;
    }
    if (++a->learned == LEARN) build_trie(a);
}

static uint32_t eval_in_full(const Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    for (uint32_t i = 0; i < a->forms.n; i++) {
        float v = form_value(&a->forms, i, s->x);
        if (!gate_on(v, a->zero_is_off)) continue;
        on[n] = a->name[i];
        value[n++] = v;
    }
    return n;
}

uint32_t ands_eval(Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    uint64_t odd = 0;
    if (a->forms.n == 0) return n;
    for (uint32_t i = 0; i < a->nused; i++) odd |= s->odd[a->used_word[i]] & a->used[a->used_word[i]];
    if (odd) return eval_in_full(a, s, n, on, value);
    if (a->learned < LEARN) learn(a, s->live);
    return find(a, s, n, on, value);
}

void ands_close(Ands *a)
{
    if (!a) return;
    forms_free(&a->forms);
    free(a->decoder.data);
    free(a->node.data);
    free(a->leaf.data);
    free(a->branch.data);
    free(a->test.data);
    free(a->stack);
}
