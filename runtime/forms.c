/* forms.c: rows of a weight matrix as affine forms, and the search for those that are on.
 *
 * Equal rows are one form: the gates of all lanes of a head, the keys of heads that share an address, the code bits of all
 * kinds of token. A form's value is accumulated column by column from the channels that are not zero; only blocks of
 * forms that such a column touches (or that are on by themselves) are looked at. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* silu is exactly -0 and sigmoid +0 below -88.72284; values between are looked at in full by the caller. */
#define OFF_BELOW (-88.75f)

void forms_init(Forms *f)
{
    *f = (Forms){.nslots = 64};
    f->slot = xrealloc(NULL, f->nslots * sizeof *f->slot);
    memset(f->slot, 0xff, f->nslots * sizeof *f->slot);
    f->start = xrealloc(NULL, sizeof *f->start);
    f->start[0] = 0;
    vec_push(&f->e, ((Entry){0, 0})); /* so that e.data is never NULL */
    f->e.n = 0;
}

void forms_free(Forms *f)
{
    free(f->bias);
    free(f->start);
    free(f->e.data);
    free(f->slot);
}

static uint32_t hash_words(uint32_t h, const void *data, size_t n)
{
    const uint32_t *w = data;
    for (size_t i = 0; i < n; i++) h = (h ^ w[i]) * 0x9e3779b1u, h ^= h >> 15;
    return h;
}

static uint32_t form_hash(const Forms *f, uint32_t i)
{
    uint32_t h = hash_words(1, &f->bias[i], 1);
    return hash_words(h, f->e.data + f->start[i], 2 * (size_t)(f->start[i + 1] - f->start[i]));
}

static bool form_equal(const Forms *f, uint32_t i, uint32_t j)
{
    uint32_t n = f->start[i + 1] - f->start[i];
    return f->bias[i] == f->bias[j] && n == f->start[j + 1] - f->start[j] &&
           memcmp(f->e.data + f->start[i], f->e.data + f->start[j], n * sizeof(Entry)) == 0;
}

static uint32_t *find_slot(Forms *f, uint32_t i)
{
    uint32_t k = form_hash(f, i) & (f->nslots - 1);
    while (f->slot[k] != UINT32_MAX && !form_equal(f, f->slot[k], i)) k = (k + 1) & (f->nslots - 1);
    return &f->slot[k];
}

static void rehash(Forms *f)
{
    f->nslots *= 4;
    f->slot = xrealloc(f->slot, f->nslots * sizeof *f->slot);
    memset(f->slot, 0xff, f->nslots * sizeof *f->slot);
    for (uint32_t i = 0; i < f->n; i++) *find_slot(f, i) = i;
}

static void reserve(Forms *f)
{
    if (f->n < f->cap) return;
    f->cap = f->cap ? f->cap * 2 : 64;
    f->bias = xrealloc(f->bias, f->cap * sizeof *f->bias);
    f->start = xrealloc(f->start, (f->cap + 1) * sizeof *f->start);
}

uint32_t forms_add(Forms *f, const Basis *basis, const int32_t *col, const float *value, uint32_t n, float scale)
{
    reserve(f);
    uint32_t first = f->e.n, i = f->n;
    float bias = 0;
    for (uint32_t k = 0; k < n; k++) {
        float w = value[k] * basis->gain[col[k]] * scale;
        if (basis->pilot[col[k]] != 0) bias += w * basis->pilot[col[k]];
        else if (w != 0) vec_push(&f->e, ((Entry){(uint32_t)col[k], w}));
    }
    f->bias[i] = bias;
    f->start[i] = first;
    f->start[i + 1] = f->e.n;
    uint32_t *slot = find_slot(f, i);
    if (*slot != UINT32_MAX) { /* known: take the entries back */
        f->e.n = first;
        return *slot;
    }
    *slot = i;
    f->n++;
    if (f->n * 2 > f->nslots) rehash(f);
    return i;
}

void forms_remap(Forms *f, const uint32_t *map)
{
    for (uint32_t i = 0; i < f->e.n; i++) f->e.data[i].at = map[f->e.data[i].at];
}

Lists lists_make(Pool *p, const uint32_t *key, uint32_t n, uint32_t keys)
{
    Lists l = {pool_array(p, (size_t)keys + 2, sizeof(uint32_t)), NULL};
    uint32_t *at = l.start + 1; /* at[k] ends up as the end of list k, which is start[k + 1] */
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != UINT32_MAX) at[key[i] + 1]++;
    for (uint32_t k = 0; k < keys; k++) at[k + 1] += at[k];
    l.item = pool_array(p, at[keys], sizeof *l.item);
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != UINT32_MAX) l.item[at[key[i]]++] = i;
    return l;
}

/* ---- gates ---- */
static bool is_on(const Gates *g, float v) { return v > OFF_BELOW && !(g->zero_is_off && v == 0); }

static void fill_columns(Gates *g, Pool *p, const Forms *f, uint32_t channels)
{
    g->start = pool_array(p, (size_t)channels + 2, sizeof *g->start);
    g->e = pool_array(p, f->e.n, sizeof *g->e);
    uint32_t *at = g->start + 1;
    for (uint32_t k = 0; k < f->e.n; k++) at[f->e.data[k].at + 1]++;
    for (uint32_t c = 0; c < channels; c++) at[c + 1] += at[c];
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) {
            Entry e = f->e.data[k];
            uint32_t block = i / GATE_BLOCK;
            g->e[at[e.at]++] = (Entry){i, e.w};
            g->used[e.at >> 6] |= 1ull << (e.at & 63);
            g->mask[(size_t)e.at * g->words + block / 64] |= 1ull << (block & 63);
        }
}

void gates_make(Gates *g, Pool *p, const Forms *f, uint32_t channels, bool zero_is_off)
{
    uint32_t blocks = (f->n + GATE_BLOCK - 1) / GATE_BLOCK, padded = blocks * GATE_BLOCK;
    *g = (Gates){.n = f->n, .words = (blocks + 63) / 64, .zero_is_off = zero_is_off};
    g->bias = pool_array(p, padded, sizeof *g->bias);
    g->acc = pool_array(p, padded, sizeof *g->acc);
    g->used = pool_array(p, channels / 64 + 1, sizeof *g->used);
    g->mask = pool_array(p, (size_t)channels * g->words, sizeof *g->mask);
    g->always = pool_array(p, g->words, sizeof *g->always);
    g->todo = pool_array(p, g->words, sizeof *g->todo);
    g->on = pool_array(p, f->n, sizeof *g->on);
    g->value = pool_array(p, f->n, sizeof *g->value);
    for (uint32_t i = 0; i < padded; i++) {
        g->acc[i] = g->bias[i] = i < f->n ? f->bias[i] : -INFINITY;
        if (is_on(g, g->bias[i])) g->always[i / GATE_BLOCK / 64] |= 1ull << (i / GATE_BLOCK & 63);
    }
    fill_columns(g, p, f, channels);
}

/* Bits of the forms of a block that are on; restores the block's accumulators. */
static uint32_t scan_plain(const float *bias, float *acc, float *value, bool zero_is_off)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < GATE_BLOCK; i++) {
        float v = value[i] = acc[i];
        acc[i] = bias[i];
        bits |= (uint32_t)(v > OFF_BELOW && !(zero_is_off && v == 0)) << i;
    }
    return bits;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint32_t scan_avx2(const float *bias, float *acc, float *value, bool zero_is_off)
{
    const __m256 off = _mm256_set1_ps(OFF_BELOW), zero = _mm256_setzero_ps();
    uint32_t bits = 0, nonzero = 0;
    for (int i = 0; i < GATE_BLOCK; i += 8) {
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

static void accumulate(Gates *g, Stream *s)
{
    memcpy(g->todo, g->always, g->words * sizeof *g->todo);
    for (uint32_t w = 0; w < s->words; w++)
        for (uint64_t bits = s->live[w] & g->used[w]; bits; bits &= bits - 1) {
            uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
            float x = s->x[c];
            if (x == 0) {
                s->live[w] &= ~(bits & -bits);
                continue;
            }
            for (uint32_t k = 0; k < g->words; k++) g->todo[k] |= g->mask[(size_t)c * g->words + k];
            for (const Entry *e = g->e + g->start[c], *end = g->e + g->start[c + 1]; e < end; e++) g->acc[e->at] += e->w * x;
        }
}

uint32_t gates_eval(Gates *g, Stream *s)
{
    static Scan *scan;
    if (!scan) scan = pick_scan();
    uint32_t n = 0;
    accumulate(g, s);
    for (uint32_t w = 0; w < g->words; w++)
        for (uint64_t todo = g->todo[w]; todo; todo &= todo - 1) {
            _Alignas(32) float value[GATE_BLOCK];
            uint32_t first = (w * 64 + (uint32_t)__builtin_ctzll(todo)) * GATE_BLOCK;
            uint32_t bits = scan(g->bias + first, g->acc + first, value, g->zero_is_off);
            for (; bits; bits &= bits - 1) {
                uint32_t i = (uint32_t)__builtin_ctz(bits);
                g->on[n] = first + i;
                g->value[n++] = value[i];
            }
        }
    return n;
}
