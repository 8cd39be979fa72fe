/* gates.c: finds the forms that are on. Constants are known beforehand, ANDs and families are left to others, the rest are sums:
 * forms with the same channels and weights are one part, whose sum comes from counting the channels that are 1, for every
 * weight; which of its members are on then follows from their biases, the greatest of which comes first. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct Sums {
    Forms part;
    uint32_t *start; /* [nparts + 1] into term */
    BitTerm *term;
} Sums;

static void make_terms(Sums *s, Pool *p)
{
    uint32_t n = 0;
    s->start = pool_array(p, (size_t)s->part.n + 1, sizeof *s->start);
    s->term = pool_array(p, s->part.e.n, sizeof *s->term);
    for (uint32_t i = 0; i < s->part.n; i++) {
        s->start[i] = n;
        n += terms_make(s->part.e.data + s->part.start[i], s->part.start[i + 1] - s->part.start[i], s->term + n);
    }
    s->start[s->part.n] = n;
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
    }
}

static void make_sums(Gates *g, Pool *p, const Forms *f, const uint32_t *key)
{
    g->nparts = g->sums->part.n;
    g->part = pool_array(p, g->nparts, sizeof *g->part);
    g->sum = pool_array(p, g->nparts, sizeof *g->sum);
    make_members(g, p, f, key);
    make_terms(g->sums, p);
}

void gates_make(Gates *g, Pool *p, const Forms *f, uint32_t channels, bool zero_is_off)
{
    uint32_t *key = xrealloc(NULL, (f->n + 1) * sizeof *key);
    bool *taken = pool_array(p, f->n, sizeof *taken);
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
    g->sums = pool_alloc(p, sizeof *g->sums);
    forms_init(&g->sums->part);
    for (uint32_t i = 0; i < f->n; i++) key[i] = taken[i] ? UINT32_MAX : forms_add_part(&g->sums->part, f, i);
    make_sums(g, p, f, key);
    free(key);
}

void gates_close(Gates *g)
{
    ands_close(g->ands);
    families_close(g->families);
    if (g->sums) forms_free(&g->sums->part);
}

uint32_t gates_ands(Gates *g, const Stream *s)
{
    return families_eval(g->families, s, ands_eval(g->ands, s, g->always, g->on, g->value), g->on, g->value);
}

DEFINE_TERMS(terms_plain, , gather_bits)
#if defined(__x86_64__)
DEFINE_TERMS(terms_bmi2, __attribute__((target("bmi2,popcnt"))), _pext_u64)
#endif

#define DEFINE_SUMS(name, attribute, terms_value)                                                                                          \
    attribute static uint32_t name(Gates *g, const Stream *s)                                                                 \
    {                                                                                                                         \
        const Sums *sums = g->sums;                                                                                           \
        uint32_t n = 0;                                                                                                       \
        for (uint32_t i = 0; i < g->nparts; i++) {                                                                            \
            uint64_t odd = 0;                                                                                                 \
            float sum = terms_value(sums->term + sums->start[i], sums->start[i + 1] - sums->start[i], s, &odd);               \
            if (odd) sum = form_value(&sums->part, i, s->x);                                                                  \
            if (!(sum + g->member[g->member_start[i]].bias > OFF_BELOW)) continue;                                            \
            g->part[n] = i;                                                                                                   \
            g->sum[n++] = sum;                                                                                                \
        }                                                                                                                     \
        return n;                                                                                                             \
    }
DEFINE_SUMS(sums_plain, , terms_plain)
#if defined(__x86_64__)
DEFINE_SUMS(sums_bmi2, __attribute__((target("bmi2,popcnt"))), terms_bmi2)
#endif

uint32_t gates_sums(Gates *g, const Stream *s)
{
#if defined(__x86_64__)
    if (simd) return sums_bmi2(g, s);
#endif
    return sums_plain(g, s);
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
