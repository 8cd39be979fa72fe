/* prove_world.c: two worlds: every pass belongs to at least one of them.
 *
 * A port takes the sum of a bit that is 0 while the machine loads and of one that is 0 while it runs. Neither range shows that the sum is a
 * bit; the ranges in the passes that load, and in those that do not, show it at once. They are made from the ranges of the parts when a variable
 * is made; its range is the hull of both. */
#include "prove_solver.h"

void solver_worlds(Solver *s, const Var *first, uint32_t n, const Var *others, uint32_t nothers)
{
    for (uint32_t i = 0; i < n; i++) s->v.data[first[i]].whi[0] = 0;
    for (uint32_t i = 0; i < nothers; i++) s->v.data[others[i]].whi[1] = 0;
}

bool solver_world(const Solver *s, Var v, int world, int32_t *lo, int32_t *hi)
{
    const VarInfo *x = &s->v.data[v];
    *lo = x->wlo[world] > x->lo ? x->wlo[world] : x->lo;
    *hi = x->whi[world] < x->hi ? x->whi[world] : x->hi;
    return *lo <= *hi;
}

void solver_like(Solver *s, Var free, Var other)
{
    for (int w = 0; w < WORLDS; w++) s->v.data[free].wlo[w] = s->v.data[other].wlo[w], s->v.data[free].whi[w] = s->v.data[other].whi[w];
}

static bool enter(Solver *s, Var v, int world)
{
    if (v == NO_VAR) return true;
    VarInfo *x = &s->v.data[v];
    int32_t lo, hi;
    if (!solver_world(s, v, world, &lo, &hi)) return false;
    if (lo == x->lo && hi == x->hi) return true;
    vec_push(&s->trail, ((Old){v, x->lo, x->hi}));
    x->lo = lo, x->hi = hi;
    return true;
}

static void leave(Solver *s)
{
    while (s->trail.n) {
        Old o = s->trail.data[--s->trail.n];
        s->v.data[o.v].lo = o.lo, s->v.data[o.v].hi = o.hi;
    }
}

static bool enter_parts(Solver *s, const VarInfo *x, int world)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < x->nlin; i++) ok = enter(s, x->lin[i].v, world);
    for (uint32_t i = 0; ok && i < x->ntable; i++) {
        const Table *t = &x->table[i];
        ok = enter(s, t->s, world) && enter(s, t->g, world) && enter(s, t->m, world);
    }
    return ok;
}

static void range_in(Solver *s, VarInfo *x, int world)
{
    int64_t lo = x->k, hi = x->k;
    if (!enter_parts(s, x, world)) {
        x->wlo[world] = 1, x->whi[world] = 0;
        return;
    }
    if (!s->trail.n) { /* as everywhere */
        x->wlo[world] = x->lo, x->whi[world] = x->hi;
        return;
    }
    lin_bounds(s, x->lin, x->nlin, &lo, &hi);
    for (uint32_t i = 0; i < x->ntable; i++) {
        int64_t a, b;
        term_bounds(s, &x->table[i], &a, &b);
        lo += a, hi += b;
    }
    x->wlo[world] = solver_clamp(lo), x->whi[world] = solver_clamp(hi);
}

void world_ranges(Solver *s, VarInfo *x)
{
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    for (int w = 0; w < WORLDS; w++) {
        range_in(s, x, w);
        leave(s);
        if (x->wlo[w] > x->whi[w]) continue;
        lo = x->wlo[w] < lo ? x->wlo[w] : lo;
        hi = x->whi[w] > hi ? x->whi[w] : hi;
    }
    if (lo > hi) return; /* in no pass at all: whatever is said holds */
    x->lo = lo > x->lo ? lo : x->lo, x->hi = hi < x->hi ? hi : x->hi;
}
