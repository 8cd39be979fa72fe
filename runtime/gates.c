/* gates.c: finds the forms that are on. Constants are known beforehand, ANDs and families are left to others, the rest are sums:
 * forms with the same channels and weights are one part, whose sum is accumulated column by column from the channels that
 * are not 0; which of its members are on then follows from their biases, the greatest of which comes first. */
#include "sparse.h"
#include <stdlib.h>

typedef struct Sums {
    uint32_t words;      /* of a mask over parts */
    uint32_t *start;     /* [channels + 1] */
    Entry *e;            /* at = part */
    uint64_t *mask;      /* [channels, words] parts that a channel touches */
    uint64_t *always;    /* [words] parts of which a member is on when all channels are 0 */
    uint64_t *todo;      /* [words] scratch */
    uint64_t *used;      /* [channels / 64] channels that any part has */
    uint32_t nused, *used_word;
    float *acc;          /* [nparts] 0 between calls */
} Sums;

static void fill_columns(Sums *s, Pool *p, const Forms *part, uint32_t channels)
{
    s->start = pool_array(p, (size_t)channels + 2, sizeof *s->start);
    s->e = pool_array(p, part->e.n, sizeof *s->e);
    uint32_t *at = s->start + 1;
    for (uint32_t k = 0; k < part->e.n; k++) at[part->e.data[k].at + 1]++;
    for (uint32_t c = 0; c < channels; c++) at[c + 1] += at[c];
    for (uint32_t i = 0; i < part->n; i++)
        for (uint32_t k = part->start[i]; k < part->start[i + 1]; k++) {
            Entry e = part->e.data[k];
            s->e[at[e.at]++] = (Entry){i, e.w};
            s->used[e.at >> 6] |= 1ull << (e.at & 63);
            s->mask[(size_t)e.at * s->words + i / 64] |= 1ull << (i & 63);
        }
}

static int by_bias(const void *a, const void *b)
{
    const Member *x = a, *y = b;
    if (x->bias != y->bias) return x->bias > y->bias ? -1 : 1;
    return x->form < y->form ? -1 : x->form > y->form;
}

/* `key` is the part of every form, UINT32_MAX for forms that are no sums. */
static void make_members(Gates *g, Pool *p, const Forms *f, const uint32_t *key)
{
    Lists l = lists_make(p, key, f->n, g->nparts);
    g->member_start = l.start;
    g->member = pool_array(p, l.start[g->nparts], sizeof *g->member);
    for (uint32_t k = 0; k < l.start[g->nparts]; k++) g->member[k] = (Member){f->bias[l.item[k]], l.item[k]};
    for (uint32_t i = 0; i < g->nparts; i++) {
        Member *m = g->member + l.start[i];
        qsort(m, l.start[i + 1] - l.start[i], sizeof *m, by_bias);
        for (uint32_t k = 0; k < l.start[i + 1] - l.start[i]; k++)
            if (gate_on(m[k].bias, g->zero_is_off)) g->sums->always[i / 64] |= 1ull << (i & 63);
    }
}

static void make_sums(Gates *g, Pool *p, const Forms *f, const Forms *part, const uint32_t *key, uint32_t channels)
{
    Sums *s = g->sums = pool_alloc(p, sizeof *s);
    g->nparts = part->n;
    s->words = (part->n + 63) / 64;
    s->mask = pool_array(p, (size_t)channels * s->words, sizeof *s->mask);
    s->always = pool_array(p, s->words, sizeof *s->always);
    s->todo = pool_array(p, s->words, sizeof *s->todo);
    s->used = pool_array(p, channels / 64 + 1, sizeof *s->used);
    s->used_word = pool_array(p, channels / 64 + 1, sizeof *s->used_word);
    s->acc = pool_array(p, part->n, sizeof *s->acc);
    g->part = pool_array(p, part->n, sizeof *g->part);
    g->sum = pool_array(p, part->n, sizeof *g->sum);
    make_members(g, p, f, key);
    fill_columns(s, p, part, channels);
    for (uint32_t w = 0; w <= channels / 64; w++)
        if (s->used[w]) s->used_word[s->nused++] = w;
}

void gates_make(Gates *g, Pool *p, const Forms *f, uint32_t channels, bool zero_is_off)
{
    uint32_t *key = xrealloc(NULL, (f->n + 1) * sizeof *key);
    bool *taken = pool_array(p, f->n, sizeof *taken);
    Forms part;
    forms_init(&part);
    *g = (Gates){.n = f->n, .zero_is_off = zero_is_off, .on = pool_array(p, f->n, sizeof *g->on), .value = pool_array(p, f->n, sizeof *g->value)};
    g->ands = ands_new(p, channels, f->n, zero_is_off);
    for (uint32_t i = 0; i < f->n; i++) {
        bool constant = f->start[i] == f->start[i + 1];
        taken[i] = constant || ands_take(g->ands, f, i, i);
        if (!constant || !gate_on(f->bias[i], zero_is_off)) continue;
        g->on[g->always] = i;
        g->value[g->always++] = f->bias[i];
    }
    ands_finish(g->ands);
    g->families = families_make(p, f, taken, zero_is_off);
    for (uint32_t i = 0; i < f->n; i++) key[i] = taken[i] ? UINT32_MAX : forms_add_part(&part, f, i);
    make_sums(g, p, f, &part, key, channels);
    forms_free(&part);
    free(key);
}

void gates_close(Gates *g)
{
    ands_close(g->ands);
    families_close(g->families);
}

uint32_t gates_ands(Gates *g, const Stream *s)
{
    return families_eval(g->families, s, ands_eval(g->ands, s, g->always, g->on, g->value), g->on, g->value);
}

static void accumulate(Sums *g, const Stream *s)
{
    for (uint32_t k = 0; k < g->words; k++) g->todo[k] = g->always[k];
    for (uint32_t i = 0; i < g->nused; i++) {
        uint32_t w = g->used_word[i];
        for (uint64_t bits = s->live[w] & g->used[w]; bits; bits &= bits - 1) {
            uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
            float x = s->x[c];
            for (uint32_t k = 0; k < g->words; k++) g->todo[k] |= g->mask[(size_t)c * g->words + k];
            for (const Entry *e = g->e + g->start[c], *end = g->e + g->start[c + 1]; e < end; e++) g->acc[e->at] += e->w * x;
        }
    }
}

uint32_t gates_sums(Gates *g, const Stream *s)
{
    Sums *sums = g->sums;
    uint32_t n = 0;
    if (g->nparts == 0) return 0;
    accumulate(sums, s);
    for (uint32_t w = 0; w < sums->words; w++)
        for (uint64_t todo = sums->todo[w]; todo; todo &= todo - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(todo);
            float sum = sums->acc[i];
            sums->acc[i] = 0;
            if (!(sum + g->member[g->member_start[i]].bias > OFF_BELOW)) continue;
            g->part[n] = i;
            g->sum[n++] = sum;
        }
    return n;
}

uint32_t gates_eval(Gates *g, const Stream *s)
{
    uint32_t n = gates_ands(g, s), parts = gates_sums(g, s);
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t k = g->member_start[g->part[i]]; k < g->member_start[g->part[i] + 1]; k++) {
            float v = g->sum[i] + g->member[k].bias;
            if (!(v > OFF_BELOW)) break;
            if (!gate_on(v, g->zero_is_off)) continue;
            g->on[n] = g->member[k].form;
            g->value[n++] = v;
        }
    return n;
}
