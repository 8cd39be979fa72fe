/* prove_sample.c: values of all variables for some random choices of the free ones, and for those that a search over bits found on its way to
 * answering a question with "perhaps". What one of them shows is possible cannot be shown impossible: it is not tried. Nothing else rests on them.
 *
 * Random samples seldom switch on a gate with many conditions; what was found for one such gate mostly answers for others, too. Values in an
 * example are worked out where they are asked for: few are. */
#include "prove_solver.h"
#include <stdlib.h>

static uint32_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32);
}

static uint32_t random32(Solver *s) { return mixed(s->random += 0x9e3779b97f4a7c15ull); }

static int32_t *room(Solver *s, Var v)
{
    for (; s->samples.n < (size_t)(v + 1) * SAMPLES;) vec_push(&s->samples, 0);
    return &s->samples.data[(size_t)v * SAMPLES];
}

static const int32_t *of(const Solver *s, Var v) { return &s->samples.data[(size_t)v * SAMPLES]; }

static void add_lin(const Solver *s, const VarTerm *t, uint32_t n, int64_t *sum)
{
    for (uint32_t i = 0; i < n; i++) {
        const int32_t *x = of(s, t[i].v);
        for (int k = 0; k < SAMPLES; k++) sum[k] += (int64_t)t[i].c * x[k];
    }
}

static void add_table(const Solver *s, const Table *t, int64_t *sum)
{
    const int32_t *g = t->g == NO_VAR ? NULL : of(s, t->g), *x = t->s == NO_VAR ? NULL : of(s, t->s), *m = t->m == NO_VAR ? NULL : of(s, t->m);
    for (int k = 0; k < SAMPLES; k++) {
        if (g && g[k] < t->gtop) continue;
        int64_t at = x ? (int64_t)x[k] - t->s0 : 0;
        if (at < 0 || at >= t->n) continue; /* a range was narrowed by what samples do not know */
        sum[k] += (int64_t)t->t[at] * (m ? m[k] + t->mk : 1);
    }
}

void sample_var(Solver *s, Var v)
{
    const VarInfo x = s->v.data[v];
    int32_t *out = room(s, v);
    int64_t sum[SAMPLES];
    if (x.kind == VAR_FREE) vec_push(&s->free, v);
    for (int k = 0; k < SAMPLES; k++) sum[k] = x.kind == VAR_FREE ? x.lo + (int64_t)(random32(s) % (uint32_t)((int64_t)x.hi - x.lo + 1)) : x.k;
    if (x.kind != VAR_FREE) add_lin(s, x.lin, x.nlin, sum);
    for (uint32_t i = 0; i < x.ntable; i++) add_table(s, &x.table[i], sum);
    for (int k = 0; k < SAMPLES; k++) out[k] = solver_clamp(sum[k]);
}

void solver_one_hot(Solver *s, const Var *v, uint32_t n)
{
    s->hot = v[0], s->nhot = n;
    for (int k = 0; k < SAMPLES; k++) {
        uint32_t hot = random32(s) % n;
        for (uint32_t i = 0; i < n; i++) room(s, v[i])[k] = i == hot;
    }
}

/* ---- examples ---- */
static uint32_t examples(const Solver *s) { return s->nexamples < EXAMPLES ? s->nexamples : EXAMPLES; }

static int32_t value_in(Solver *s, uint32_t e, Var v);

static int64_t table_in(Solver *s, uint32_t e, const Table *t)
{
    if (t->g != NO_VAR && value_in(s, e, t->g) < t->gtop) return 0;
    int64_t at = t->s == NO_VAR ? 0 : (int64_t)value_in(s, e, t->s) - t->s0;
    if (at < 0 || at >= t->n || !t->t[at]) return 0;
    return t->t[at] * (t->m == NO_VAR ? 1 : (int64_t)value_in(s, e, t->m) + t->mk);
}

/* Definitions refer to older variables only. */
static int32_t value_in(Solver *s, uint32_t e, Var v)
{
    while (s->example[e].n <= v) vec_push(&s->example[e], OPEN);
    if (s->example[e].data[v] != OPEN) return s->example[e].data[v];
    const VarInfo *x = &s->v.data[v];
    int64_t sum = x->k;
    if (x->kind == VAR_FREE) sum = x->plo + (int64_t)(mixed((uint64_t)s->nexamples << 32 | v) % (uint32_t)((int64_t)x->phi - x->plo + 1));
    for (uint32_t i = 0; i < x->nlin; i++) sum += (int64_t)x->lin[i].c * value_in(s, e, x->lin[i].v);
    for (uint32_t i = 0; i < x->ntable; i++) sum += table_in(s, e, &x->table[i]);
    return s->example[e].data[v] = solver_clamp(sum);
}

/* One of the hot bits is 1 where the search met none of them. */
static void choose_hot(Solver *s, int32_t *value)
{
    uint32_t on = 0;
    for (uint32_t i = 0; i < s->nhot; i++) on += value[s->hot + i] == 1;
    if (on == 1) return;
    uint32_t hot = random32(s) % (s->nhot ? s->nhot : 1);
    for (uint32_t i = 0; i < s->nhot; i++) value[s->hot + i] = i == hot;
}

void sample_add(Solver *s)
{
    uint32_t e = s->nexamples++ % EXAMPLES, n = s->v.n;
    while (s->example[e].n < n) vec_push(&s->example[e], OPEN);
    int32_t *value = s->example[e].data;
    for (uint32_t i = 0; i < n; i++) value[i] = OPEN;
    for (uint32_t i = 0; i < s->free.n; i++) encoder_model(s->encoder, s->free.data[i], &value[s->free.data[i]]);
    choose_hot(s, value);
}

bool sample_shows(Solver *s, const Bound *b, uint32_t n)
{
    for (int k = 0; k < SAMPLES; k++) {
        bool all = true;
        for (uint32_t i = 0; all && i < n; i++) all = of(s, b[i].v)[k] >= b[i].lo && of(s, b[i].v)[k] <= b[i].hi;
        if (all) return true;
    }
    for (uint32_t e = 0; e < examples(s); e++) {
        bool all = true;
        for (uint32_t i = 0; all && i < n; i++) all = value_in(s, e, b[i].v) >= b[i].lo && value_in(s, e, b[i].v) <= b[i].hi;
        if (all) return true;
    }
    return false;
}

void solver_sampled(const Solver *s, Var v, int32_t *lo, int32_t *hi)
{
    const int32_t *x = of(s, v);
    *lo = *hi = x[0];
    for (int k = 1; k < SAMPLES; k++) *lo = x[k] < *lo ? x[k] : *lo, *hi = x[k] > *hi ? x[k] : *hi;
}

void solver_shown(Solver *s, Var v, int32_t *lo, int32_t *hi)
{
    solver_sampled(s, v, lo, hi);
    for (uint32_t e = 0; e < examples(s); e++) {
        int32_t y = value_in(s, e, v);
        *lo = y < *lo ? y : *lo, *hi = y > *hi ? y : *hi;
    }
}
