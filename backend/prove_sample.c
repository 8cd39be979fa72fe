/* prove_sample.c: values of all variables for some random choices of the free ones. What a sample shows is possible cannot be shown impossible:
 * it is not tried. Nothing else rests on samples. */
#include "prove_solver.h"

static uint32_t random32(Solver *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32);
}

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

bool sample_shows(const Solver *s, const Bound *b, uint32_t n)
{
    for (int k = 0; k < SAMPLES; k++) {
        bool all = true;
        for (uint32_t i = 0; all && i < n; i++) all = of(s, b[i].v)[k] >= b[i].lo && of(s, b[i].v)[k] <= b[i].hi;
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
