/* gates.c: finds the forms that are on. Three kinds, by what the form is:
 *   constant   on or off for ever
 *   AND        on exactly when each of its channels, if all are 0 or 1, has one given value; then its value is a constant.
 *              Forms over the same channels (address decoders) are one look-up in a table by those channels' bits; any
 *              other is tried only when its trigger, one channel that must be 1, is 1
 *   sum        all others: accumulated column by column from the channels that are not 0, in blocks of which only those
 *              are looked at that a column touched
 * A channel outside {0, 1} where an AND wants bits makes all ANDs of the matrix be computed as forms, for that token. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* silu is exactly -0 and sigmoid +0 below -88.72284; callers look at what lies between in full. */
#define OFF_BELOW (-88.75f)
enum { BLOCK = 32, NO_FORM = 0xffffffff, MAX_DECODER = 12, MIN_DECODER = 4, LEARN = 512 };

static bool is_on(float v, bool zero_is_off) { return v > OFF_BELOW && !(zero_is_off && v == 0); }

/* ---- sums ---- */
typedef struct Sums {
    Forms forms;
    uint32_t words;     /* of a mask over blocks of BLOCK forms */
    bool zero_is_off;
    uint32_t *name;     /* [forms] number in the Gates */
    float *bias, *acc;  /* [blocks * BLOCK], padded with -inf; acc equals bias between calls */
    uint32_t *start;    /* [channels + 1] */
    Entry *e;           /* at = form */
    uint64_t *mask;     /* [channels, words] blocks that a channel touches */
    uint64_t *always;   /* [words] blocks with a form that is on when every channel is 0 */
    uint64_t *used;     /* [channels / 64] channels that any form has */
    uint64_t *todo;     /* [words] scratch */
} Sums;

static void fill_columns(Sums *g, Pool *p, const Forms *f, uint32_t channels)
{
    g->start = pool_array(p, (size_t)channels + 2, sizeof *g->start);
    g->e = pool_array(p, f->e.n, sizeof *g->e);
    uint32_t *at = g->start + 1;
    for (uint32_t k = 0; k < f->e.n; k++) at[f->e.data[k].at + 1]++;
    for (uint32_t c = 0; c < channels; c++) at[c + 1] += at[c];
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) {
            Entry e = f->e.data[k];
            uint32_t block = i / BLOCK;
            g->e[at[e.at]++] = (Entry){i, e.w};
            g->used[e.at >> 6] |= 1ull << (e.at & 63);
            g->mask[(size_t)e.at * g->words + block / 64] |= 1ull << (block & 63);
        }
}

static void sums_make(Sums *g, Pool *p, uint32_t channels, bool zero_is_off)
{
    const Forms *f = &g->forms;
    uint32_t blocks = (f->n + BLOCK - 1) / BLOCK, padded = blocks * BLOCK;
    g->words = (blocks + 63) / 64;
    g->zero_is_off = zero_is_off;
    g->bias = pool_array(p, padded, sizeof *g->bias);
    g->acc = pool_array(p, padded, sizeof *g->acc);
    g->used = pool_array(p, channels / 64 + 1, sizeof *g->used);
    g->mask = pool_array(p, (size_t)channels * g->words, sizeof *g->mask);
    g->always = pool_array(p, g->words, sizeof *g->always);
    g->todo = pool_array(p, g->words, sizeof *g->todo);
    for (uint32_t i = 0; i < padded; i++) {
        g->acc[i] = g->bias[i] = i < f->n ? f->bias[i] : -INFINITY;
        if (is_on(g->bias[i], zero_is_off)) g->always[i / BLOCK / 64] |= 1ull << (i / BLOCK & 63);
    }
    fill_columns(g, p, f, channels);
}

/* Bits of the forms of a block that are on; restores the block's accumulators. */
static uint32_t scan_plain(const float *bias, float *acc, float *value, bool zero_is_off)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < BLOCK; i++) {
        value[i] = acc[i];
        acc[i] = bias[i];
        bits |= (uint32_t)is_on(value[i], zero_is_off) << i;
    }
    return bits;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint32_t scan_avx2(const float *bias, float *acc, float *value, bool zero_is_off)
{
    const __m256 off = _mm256_set1_ps(OFF_BELOW), zero = _mm256_setzero_ps();
    uint32_t bits = 0, nonzero = 0;
    for (int i = 0; i < BLOCK; i += 8) {
        __m256 v = _mm256_load_ps(acc + i);
        _mm256_store_ps(value + i, v);
        _mm256_store_ps(acc + i, _mm256_load_ps(bias + i));
        bits |= (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, off, _CMP_GT_OQ)) << i;
        nonzero |= (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, zero, _CMP_NEQ_UQ)) << i;
    }
    return zero_is_off ? bits & nonzero : bits;
}
#endif

typedef uint32_t Scan(const float *, float *, float *, bool);

static Scan *pick_scan(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return scan_avx2;
#endif
    return scan_plain;
}

static void accumulate(Sums *g, const Stream *s)
{
    for (uint32_t k = 0; k < g->words; k++) g->todo[k] = g->always[k];
    for (uint32_t w = 0; w < s->words; w++)
        for (uint64_t bits = s->live[w] & g->used[w]; bits; bits &= bits - 1) {
            uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
            float x = s->x[c];
            for (uint32_t k = 0; k < g->words; k++) g->todo[k] |= g->mask[(size_t)c * g->words + k];
            for (const Entry *e = g->e + g->start[c], *end = g->e + g->start[c + 1]; e < end; e++) g->acc[e->at] += e->w * x;
        }
}

static uint32_t sums_eval(Sums *g, const Stream *s, uint32_t n, uint32_t *on, float *out)
{
    static Scan *scan;
    if (!scan) scan = pick_scan();
    accumulate(g, s);
    for (uint32_t w = 0; w < g->words; w++)
        for (uint64_t todo = g->todo[w]; todo; todo &= todo - 1) {
            _Alignas(32) float value[BLOCK];
            uint32_t first = (w * 64 + (uint32_t)__builtin_ctzll(todo)) * BLOCK;
            uint32_t bits = scan(g->bias + first, g->acc + first, value, g->zero_is_off);
            for (; bits; bits &= bits - 1) {
                uint32_t i = (uint32_t)__builtin_ctz(bits);
                on[n] = g->name[first + i];
                out[n++] = value[i];
            }
        }
    return n;
}

/* ---- ANDs ---- */
typedef struct {
    uint64_t mask, want;
    uint32_t word;
} Test;
typedef struct {
    uint32_t first, last; /* tests */
} Tests;
typedef struct {
    uint32_t n;
    uint32_t *channel; /* [n] */
    uint32_t *table;   /* [2^n] form, or NO_FORM */
} Decoder;
typedef struct Ands {
    Forms forms;
    uint32_t channels, words;
    bool zero_is_off;
    uint32_t *name;    /* [forms] number in the Gates */
    float *value;      /* [forms] when on */
    Tests *tests;      /* [forms] */
    VEC(Test) test;
    VEC(Decoder) decoder;
    VEC(uint32_t) untriggered; /* forms whose literals are all negative */
    uint32_t *trigger_start;   /* [channels + 1]: forms by trigger */
    uint32_t *trigger;
    bool *decoded;     /* [forms] */
    uint64_t *used, *triggers; /* [words] */
    uint32_t *seen, learned;   /* how often each channel was 1 during the first LEARN calls */
} Ands;

/* The value with all literals right, and whether any wrong one turns the form off. `a` and `b` are the smallest two weights. */
static bool is_and(const Forms *f, uint32_t i, bool zero_is_off, float *value)
{
    float top = f->bias[i], a = INFINITY, b = INFINITY;
    bool each = true;
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) {
        float w = fabsf(f->e.data[k].w);
        if (f->e.data[k].w > 0) top += w;
        if (w < a) b = a, a = w;
        else if (w < b) b = w;
    }
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) each &= !is_on(top - fabsf(f->e.data[k].w), zero_is_off);
    *value = top;
    return is_on(top, zero_is_off) && each && !(top - a - b > OFF_BELOW);
}

static bool same_channels(const Forms *f, uint32_t i, uint32_t j)
{
    uint32_t n = f->start[i + 1] - f->start[i];
    if (n != f->start[j + 1] - f->start[j]) return false;
    for (uint32_t k = 0; k < n; k++)
        if (f->e.data[f->start[i] + k].at != f->e.data[f->start[j] + k].at) return false;
    return true;
}

static uint32_t pattern(const Forms *f, uint32_t i)
{
    uint32_t bits = 0;
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) bits |= (uint32_t)(f->e.data[k].w > 0) << (k - f->start[i]);
    return bits;
}

static const Forms *sort_forms;
static int by_channels(const void *a, const void *b)
{
    const Forms *f = sort_forms;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint32_t n = f->start[i + 1] - f->start[i], m = f->start[j + 1] - f->start[j];
    if (n != m) return n < m ? -1 : 1;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t x = f->e.data[f->start[i] + k].at, y = f->e.data[f->start[j] + k].at;
        if (x != y) return x < y ? -1 : 1;
    }
    return i < j ? -1 : 1;
}

static void add_decoder(Ands *a, Pool *p, const uint32_t *form, uint32_t count)
{
    const Forms *f = &a->forms;
    uint32_t first = f->start[form[0]], n = f->start[form[0] + 1] - first;
    if (count < MIN_DECODER || n > MAX_DECODER) return;
    Decoder d = {n, pool_array(p, n, sizeof *d.channel), pool_array(p, 1u << n, sizeof *d.table)};
    memset(d.table, 0xff, (sizeof *d.table) << n);
    for (uint32_t k = 0; k < n; k++) d.channel[k] = f->e.data[first + k].at;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *at = &d.table[pattern(f, form[i])];
        if (*at != NO_FORM) continue; /* a second form for the same pattern is tried by itself */
        *at = form[i];
        a->decoded[form[i]] = true;
    }
    vec_push(&a->decoder, d);
}

static void find_decoders(Ands *a, Pool *p)
{
    const Forms *f = &a->forms;
    uint32_t *order = xrealloc(NULL, (f->n + 1) * sizeof *order);
    for (uint32_t i = 0; i < f->n; i++) order[i] = i;
    sort_forms = f;
    qsort(order, f->n, sizeof *order, by_channels);
    for (uint32_t i = 0, end; i < f->n; i = end) {
        for (end = i + 1; end < f->n && same_channels(f, order[i], order[end]); end++) {}
        add_decoder(a, p, order + i, end - i);
    }
    free(order);
}

static void add_literal(Ands *a, uint32_t first, const Entry *e)
{
    uint64_t bit = 1ull << (e->at & 63);
    uint32_t t = first;
    while (t < a->test.n && a->test.data[t].word != e->at >> 6) t++;
    if (t == a->test.n) vec_push(&a->test, ((Test){0, 0, e->at >> 6}));
    a->test.data[t].mask |= bit;
    if (e->w > 0) a->test.data[t].want |= bit;
    a->used[e->at >> 6] |= bit;
}

/* Which positive literal is 1 least often, as far as is known; NO_FORM when there is none. */
static uint32_t rarest(const Ands *a, uint32_t i)
{
    uint32_t best = NO_FORM;
    for (uint32_t k = a->forms.start[i]; k < a->forms.start[i + 1]; k++) {
        const Entry *e = &a->forms.e.data[k];
        if (e->w > 0 && (best == NO_FORM || a->seen[e->at] < a->seen[best])) best = e->at;
    }
    return best;
}

static void set_triggers(Ands *a)
{
    uint32_t *at = a->trigger_start + 1, n = a->forms.n;
    memset(a->trigger_start, 0, ((size_t)a->channels + 2) * sizeof *a->trigger_start);
    memset(a->triggers, 0, a->words * sizeof *a->triggers);
    a->untriggered.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = a->decoded[i] ? NO_FORM : rarest(a, i);
        if (c != NO_FORM) at[c + 1]++, a->triggers[c >> 6] |= 1ull << (c & 63);
        else if (!a->decoded[i]) vec_push(&a->untriggered, i);
    }
    for (uint32_t c = 0; c < a->channels; c++) at[c + 1] += at[c];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = a->decoded[i] ? NO_FORM : rarest(a, i);
        if (c != NO_FORM) a->trigger[at[c]++] = i;
    }
}

static void ands_make(Ands *a, Pool *p, uint32_t channels, bool zero_is_off)
{
    const Forms *f = &a->forms;
    a->channels = channels;
    a->words = channels / 64 + 1;
    a->zero_is_off = zero_is_off;
    a->tests = pool_array(p, f->n, sizeof *a->tests);
    a->decoded = pool_array(p, f->n, sizeof *a->decoded);
    a->used = pool_array(p, a->words, sizeof *a->used);
    a->triggers = pool_array(p, a->words, sizeof *a->triggers);
    a->seen = pool_array(p, channels, sizeof *a->seen);
    a->trigger_start = pool_array(p, (size_t)channels + 2, sizeof *a->trigger_start);
    a->trigger = pool_array(p, f->n, sizeof *a->trigger);
    for (uint32_t i = 0; i < f->n; i++) {
        a->tests[i].first = a->test.n;
        for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) add_literal(a, a->tests[i].first, &f->e.data[k]);
        a->tests[i].last = a->test.n;
    }
    find_decoders(a, p);
    set_triggers(a);
}

static bool holds(const Ands *a, uint32_t i, const uint64_t *live)
{
    uint64_t wrong = 0;
    for (uint32_t t = a->tests[i].first; t < a->tests[i].last; t++) {
        const Test *test = &a->test.data[t];
        wrong |= (live[test->word] & test->mask) ^ test->want;
    }
    return wrong == 0;
}

/* Triggers are chosen again once it is known which channels are seldom 1. */
static void learn(Ands *a, const Stream *s)
{
    for (uint32_t w = 0; w < s->words; w++)
        for (uint64_t bits = s->live[w] & a->used[w]; bits; bits &= bits - 1) a->seen[w * 64 + (uint32_t)__builtin_ctzll(bits)]++;
    if (++a->learned == LEARN) set_triggers(a);
}

static uint32_t eval_in_full(const Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    for (uint32_t i = 0; i < a->forms.n; i++) {
        float v = form_value(&a->forms, i, s->x);
        if (!is_on(v, a->zero_is_off)) continue;
        on[n] = a->name[i];
        value[n++] = v;
    }
    return n;
}

static uint32_t decode(const Decoder *d, const uint64_t *live)
{
    uint32_t index = 0;
    for (uint32_t k = 0; k < d->n; k++) index |= (uint32_t)(live[d->channel[k] >> 6] >> (d->channel[k] & 63) & 1) << k;
    return d->table[index];
}

static uint32_t ands_eval(Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    uint64_t odd = 0;
    for (uint32_t w = 0; w < s->words; w++) odd |= s->odd[w] & a->used[w];
    if (odd) return eval_in_full(a, s, n, on, value);
    if (a->learned < LEARN) learn(a, s);
#define PUT(i) (on[n] = a->name[i], value[n++] = a->value[i])
    for (uint32_t k = 0; k < a->decoder.n; k++) {
        uint32_t i = decode(&a->decoder.data[k], s->live);
        if (i != NO_FORM) PUT(i);
    }
    for (uint32_t k = 0; k < a->untriggered.n; k++)
        if (holds(a, a->untriggered.data[k], s->live)) PUT(a->untriggered.data[k]);
    for (uint32_t w = 0; w < s->words; w++)
        for (uint64_t bits = s->live[w] & a->triggers[w]; bits; bits &= bits - 1) {
            uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
            for (uint32_t k = a->trigger_start[c]; k < a->trigger_start[c + 1]; k++)
                if (holds(a, a->trigger[k], s->live)) PUT(a->trigger[k]);
        }
#undef PUT
    return n;
}

/* ---- all three ---- */
void gates_make(Gates *g, Pool *p, const Forms *f, uint32_t channels, bool zero_is_off)
{
    *g = (Gates){.n = f->n, .on = pool_array(p, f->n, sizeof *g->on), .value = pool_array(p, f->n, sizeof *g->value)};
    Ands *a = g->ands = pool_alloc(p, sizeof *a);
    Sums *s = g->sums = pool_alloc(p, sizeof *s);
    forms_init(&a->forms);
    forms_init(&s->forms);
    a->name = pool_array(p, f->n, sizeof *a->name);
    a->value = pool_array(p, f->n, sizeof *a->value);
    s->name = pool_array(p, f->n, sizeof *s->name);
    for (uint32_t i = 0; i < f->n; i++) {
        float value;
        if (f->start[i] == f->start[i + 1]) {
            if (!is_on(f->bias[i], zero_is_off)) continue;
            g->on[g->always] = i;
            g->value[g->always++] = f->bias[i];
        } else if (is_and(f, i, zero_is_off, &value)) {
            a->name[a->forms.n] = i;
            a->value[a->forms.n] = value;
            forms_copy(&a->forms, f, i);
        } else {
            s->name[s->forms.n] = i;
            forms_copy(&s->forms, f, i);
        }
    }
    ands_make(a, p, channels, zero_is_off);
    sums_make(s, p, channels, zero_is_off);
}

uint32_t gates_eval(Gates *g, const Stream *s)
{
    uint32_t n = g->always;
    if (g->ands->forms.n) n = ands_eval(g->ands, s, n, g->on, g->value);
    if (g->sums->forms.n) n = sums_eval(g->sums, s, n, g->on, g->value);
    return n;
}

void gates_close(Gates *g)
{
    if (!g->ands) return;
    forms_free(&g->ands->forms);
    forms_free(&g->sums->forms);
    free(g->ands->test.data);
    free(g->ands->decoder.data);
    free(g->ands->untriggered.data);
}
