/* prove_search.c: whether some ranges can hold together, by bounds propagation and case split over the definitions.
 *
 * A question ("can v be above hi?", "can these hold together?") is asked of the definitions in the cone below it, first of the nearest
 * level, then of deeper ones; variables whose definition is left out count as free in their proved range, which is sound. Propagation narrows
 * ranges in both directions through linear forms and tables; when it stops short of a contradiction a variable is split in two. The answer
 * is "impossible" or "not shown"; the number of splits is bounded. */
#include "prove_solver.h"
#include <stdlib.h>

enum { BUDGET = 1000, MODERATE_BUDGET = 100, MAX_DEPTH = 12, NEAR = 3 /* levels */, WEIGHT = 4096 };

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }

/* ---- the cone of a question ---- */
static void reach(Solver *s, Var v, uint32_t depth)
{
    if (s->seen[v]) return; /* breadth first: it was reached with at least this depth left */
    s->seen[v] = depth + 1;
    vec_push(&s->cone, v);
    for (uint32_t i = s->v.data[v].side; i; i = s->sides.data[i - 1].next)
        if (s->sides.data[i - 1].whole) reach(s, s->sides.data[i - 1].form, depth);
}

static void watch(Solver *s, Var v, Var user, uint32_t depth)
{
    reach(s, v, depth);
    vec_push(&s->watches, ((Watch){user, s->watch[v]}));
    s->watch[v] = s->watches.n;
}

/* A linear form is looked through at once, so that breadth-first order is that of definitions. */
static void activate(Solver *s, Var v, uint32_t depth)
{
    const VarInfo *x = &s->v.data[v];
    vec_push(&s->active, v);
    uint32_t below = x->kind == VAR_DEF ? depth - 1 : depth;
    for (uint32_t i = 0; i < x->nlin; i++) watch(s, x->lin[i].v, v, below);
    for (uint32_t i = 0; i < x->ntable; i++) {
        Var part[3] = {x->table[i].s, x->table[i].g, x->table[i].m};
        for (int k = 0; k < 3; k++)
            if (part[k] != NO_VAR) watch(s, part[k], v, below);
    }
}

static void build_cone(Solver *s, const Bound *b, uint32_t n, uint32_t depth)
{
    for (uint32_t i = 0; i < n; i++) reach(s, b[i].v, depth);
    for (uint32_t i = 0; i < s->cone.n; i++) {
        Var v = s->cone.data[i];
        VarKind k = s->v.data[v].kind;
        uint32_t d = s->seen[v] - 1;
        if (k == VAR_LIN || (k == VAR_DEF && d > 0)) activate(s, v, d), s->v.data[v].on = true;
    }
    /* what was learned about pairs that are both here */
    for (uint32_t i = 0, n = s->cone.n; i < n; i++)
        for (uint32_t k = s->v.data[s->cone.data[i]].side; k; k = s->sides.data[k - 1].next) {
            Var f = s->sides.data[k - 1].form;
            const VarInfo *x = &s->v.data[f];
            bool all = !x->on;
            for (uint32_t j = 0; all && j < x->nlin; j++) all = s->seen[x->lin[j].v] != 0;
            if (!all) continue;
            reach(s, f, 0);
            activate(s, f, 0), s->v.data[f].on = true;
        }
}

static void clear_cone(Solver *s)
{
    for (uint32_t i = 0; i < s->cone.n; i++) s->seen[s->cone.data[i]] = s->watch[s->cone.data[i]] = 0, s->v.data[s->cone.data[i]].on = false;
    s->cone.n = s->active.n = s->watches.n = 0;
}

/* ---- propagation ---- */
static void enqueue(Solver *s, Var v)
{
    if (s->queued[v]) return;
    s->queued[v] = 1;
    vec_push(&s->queue, v);
}

static bool narrow(Solver *s, Var v, int64_t lo, int64_t hi)
{
    VarInfo *x = &s->v.data[v];
    if (lo <= x->lo && hi >= x->hi) return true;
    vec_push(&s->trail, ((Old){v, x->lo, x->hi}));
    if (lo > x->lo) x->lo = solver_clamp(lo);
    if (hi < x->hi) x->hi = solver_clamp(hi);
    if (x->lo > x->hi) return false;
    if (x->on) enqueue(s, v);
    for (uint32_t w = s->watch[v]; w; w = s->watches.data[w - 1].next) enqueue(s, s->watches.data[w - 1].user);
    return true;
}

static void undo(Solver *s, uint32_t mark)
{
    while (s->trail.n > mark) {
        Old o = s->trail.data[--s->trail.n];
        s->v.data[o.v].lo = o.lo, s->v.data[o.v].hi = o.hi;
    }
}

/* c * x in [lo, hi] */
static bool narrow_scaled(Solver *s, Var x, int64_t c, int64_t lo, int64_t hi)
{
    return c > 0 ? narrow(s, x, ceil_div(lo, c), floor_div(hi, c)) : narrow(s, x, ceil_div(hi, c), floor_div(lo, c));
}

static bool reaches(const Table *t, int32_t at, int64_t mlo, int64_t mhi, int64_t lo, int64_t hi)
{
    int64_t p, q, v = t->t[at - t->s0];
    range_product(v, v, mlo, mhi, &p, &q);
    return q >= lo && p <= hi;
}

/* The term lies in [lo, hi]. */
static bool propagate_table(Solver *s, const Table *t, int64_t lo, int64_t hi)
{
    int g = guard_state(s, t);
    int64_t mlo = 1, mhi = 1, tlo, thi;
    if (g == 0) return lo <= 0 && hi >= 0;
    if (g < 0) {
        value_bounds(s, t, &tlo, &thi);
        if (thi < lo || tlo > hi) return lo <= 0 && hi >= 0 && narrow(s, t->g, INT32_MIN, t->gtop - 1);
        if (lo <= 0 && hi >= 0) return true;
        if (!narrow(s, t->g, t->gtop, INT32_MAX)) return false;
    }
    if (t->m != NO_VAR) mlo = (int64_t)s->v.data[t->m].lo + t->mk, mhi = (int64_t)s->v.data[t->m].hi + t->mk;
    if (t->s != NO_VAR) {
        int32_t a = s->v.data[t->s].lo, b = s->v.data[t->s].hi;
        while (a <= b && !reaches(t, a, mlo, mhi, lo, hi)) a++;
        while (b >= a && !reaches(t, b, mlo, mhi, lo, hi)) b--;
        if (!narrow(s, t->s, a, b)) return false;
    }
    if (t->m == NO_VAR) return true;
    table_bounds(s, t, &tlo, &thi);
    if (tlo != thi || tlo == 0) return true;
    return narrow_scaled(s, t->m, tlo, lo - tlo * t->mk, hi - tlo * t->mk);
}

/* v = k + sum of parts; the rest of the sum bounds every part. */
static bool propagate_one(Solver *s, Var v)
{
    const VarInfo *x = &s->v.data[v]; /* no variable is made during a question */
    uint32_t n = x->nlin + x->ntable;
    while (s->part.n < 2 * n) vec_push(&s->part, 0);
    int64_t *part = s->part.data, lo = x->k, hi = x->k;
    for (uint32_t i = 0; i < n; i++) {
        part[2 * i] = part[2 * i + 1] = 0;
        if (i < x->nlin) lin_bounds(s, &x->lin[i], 1, &part[2 * i], &part[2 * i + 1]);
        else term_bounds(s, &x->table[i - x->nlin], &part[2 * i], &part[2 * i + 1]);
        lo += part[2 * i], hi += part[2 * i + 1];
    }
    if (!narrow(s, v, lo, hi)) return false;
    int64_t vlo = s->v.data[v].lo, vhi = s->v.data[v].hi;
    if (vlo <= lo && vhi >= hi) return true;
    for (uint32_t i = 0; i < n; i++) {
        int64_t plo = vlo - (hi - part[2 * i + 1]), phi = vhi - (lo - part[2 * i]);
        if (plo <= part[2 * i] && phi >= part[2 * i + 1]) continue;
        bool ok = i < x->nlin ? narrow_scaled(s, x->lin[i].v, x->lin[i].c, plo, phi) : propagate_table(s, &x->table[i - x->nlin], plo, phi);
        if (!ok) return false;
    }
    return true;
}

static bool propagate(Solver *s)
{
    bool ok = true;
    for (; ok && s->head < s->queue.n; s->head++) {
        Var v = s->queue.data[s->head];
        s->queued[v] = 0;
        ok = propagate_one(s, v);
    }
    for (; s->head < s->queue.n; s->head++) s->queued[s->queue.data[s->head]] = 0;
    s->queue.n = s->head = 0;
    return ok;
}

/* ---- case split ---- */
typedef struct {
    Var v;
    int32_t at; /* v <= at, or v > at */
} Split;

static void count_var(Solver *s, Var v, uint32_t weight)
{
    const VarInfo *x = &s->v.data[v];
    if (x->lo == x->hi) return;
    if (!s->count[v]) vec_push(&s->counted, v);
    s->count[v] += weight;
}

/* Whether v's definition still has to be made true. While v has all its proved range, every choice of its parts gives a value in it. */
static bool undecided(const Solver *s, Var v)
{
    const VarInfo *x = &s->v.data[v];
    if (x->lo == x->plo && x->hi == x->phi) return false;
    int64_t lo = x->k, hi = x->k, a, b;
    lin_bounds(s, x->lin, x->nlin, &lo, &hi);
    for (uint32_t i = 0; i < x->ntable; i++) {
        term_bounds(s, &x->table[i], &a, &b);
        lo += a, hi += b;
    }
    return lo < x->lo || hi > x->hi;
}

static void count_table(Solver *s, const Table *t)
{
    int64_t lo, hi;
    term_bounds(s, t, &lo, &hi);
    if (lo == hi) return;
    if (guard_state(s, t) < 0) {
        const VarInfo *x = &s->v.data[t->g];
        count_var(s, t->g, x->kind == VAR_LIN ? 2 * WEIGHT / x->nlin : WEIGHT);
        return;
    }
    if (t->m != NO_VAR) count_var(s, t->m, WEIGHT / 4);
    if (t->s != NO_VAR) count_var(s, t->s, WEIGHT / 2);
}

/* The variable that occurs most in the undecided parts of v's definition. */
static Split choose(Solver *s, Var v)
{
    const VarInfo x = s->v.data[v];
    Split best = {NO_VAR, 0};
    uint32_t most = 0;
    s->counted.n = 0;
    for (uint32_t i = 0; i < x.nlin; i++) count_var(s, x.lin[i].v, WEIGHT / 4);
    for (uint32_t i = 0; i < x.ntable; i++) count_table(s, &x.table[i]);
    for (uint32_t i = 0; i < s->counted.n; i++) {
        Var c = s->counted.data[i];
        if (s->count[c] > most) most = s->count[c], best.v = c;
        s->count[c] = 0;
    }
    for (uint32_t i = 0; i < x.ntable; i++)
        if (x.table[i].g == best.v && best.v != NO_VAR) {
            best.at = x.table[i].gtop - 1;
            return best;
        }
    if (best.v != NO_VAR) best.at = (int32_t)floor_div((int64_t)s->v.data[best.v].lo + s->v.data[best.v].hi, 2);
    return best;
}

static bool refute(Solver *s);

static void collect_arms(Solver *s)
{
    const VarInfo x = s->v.data[s->model_of];
    s->arms.n = 0;
    for (uint32_t i = 0; i < x.ntable; i++) {
        int64_t lo, hi;
        if (x.table[i].g == NO_VAR || guard_state(s, &x.table[i]) != 1) continue;
        value_bounds(s, &x.table[i], &lo, &hi);
        if (s->model_sign > 0 ? hi > 0 : lo < 0) vec_push(&s->arms, ((Arm){x.table[i].g, x.table[i].gtop}));
    }
}

static bool refute_half(Solver *s, Var v, int64_t lo, int64_t hi)
{
    uint32_t mark = s->trail.n;
    bool r = !narrow(s, v, lo, hi) || refute(s);
    for (; s->head < s->queue.n; s->head++) s->queued[s->queue.data[s->head]] = 0;
    s->queue.n = s->head = 0;
    undo(s, mark);
    return r;
}

static Var most_pressing(const Solver *s)
{
    for (uint32_t i = 0; i < s->active.n; i++)
        if (undecided(s, s->active.data[i])) return s->active.data[i];
    return NO_VAR;
}

/* Nearest to the question first; or gates that must be on before gates that must not all be, the lowest first. */
static void order_active(Solver *s)
{
    VEC(Var) sorted = {0};
    for (int kind = 0; s->low_first && kind < 2; kind++)
        for (uint32_t level = 0, left = 1; left; level++) {
            left = 0;
            for (uint32_t i = 0; i < s->active.n; i++) {
                const VarInfo *x = &s->v.data[s->active.data[i]];
                if ((x->kind == VAR_DEF) != (kind == 0)) continue;
                if (x->level == level) vec_push(&sorted, s->active.data[i]);
                left += x->level > level;
            }
        }
    if (sorted.n) memcpy(s->active.data, sorted.data, sorted.n * sizeof *sorted.data);
    free(sorted.data);
}

/* True when the present ranges hold in no pass. */
static bool refute(Solver *s)
{
    if (!propagate(s)) return true;
    s->nodes++;
    if (s->budget == 0) {
        s->spent = true;
        return false;
    }
    s->budget--;
    Var next = most_pressing(s);
    if (next != NO_VAR) {
        Split x = choose(s, next);
        if (x.v != NO_VAR) return refute_half(s, x.v, (int64_t)x.at + 1, INT32_MAX) && refute_half(s, x.v, INT32_MIN, x.at);
    }
    s->found = true;
    if (s->model_of != NO_VAR) collect_arms(s);
    return false;
}

static bool ask(Solver *s, const Bound *b, uint32_t n, uint32_t depth, uint32_t before)
{
    s->found = false;
    build_cone(s, b, n, depth);
    s->asked = s->active.n;
    if (s->asked == before) { /* the same question again */
        clear_cone(s);
        return false;
    }
    uint32_t mark = s->trail.n;
    s->budget = s->limit;
    order_active(s);
    bool ok = true;
    for (uint32_t i = 0; ok && i < s->active.n; i++) enqueue(s, s->active.data[i]);
    for (uint32_t i = 0; ok && i < n; i++) ok = narrow(s, b[i].v, b[i].lo, b[i].hi);
    for (uint32_t i = 0; ok && i < s->implied.n; i++)
        if (s->seen[s->implied.data[i].v]) ok = narrow(s, s->implied.data[i].v, s->implied.data[i].lo, s->implied.data[i].hi);
    bool r = !ok || refute(s);
    for (; s->head < s->queue.n; s->head++) s->queued[s->queue.data[s->head]] = 0;
    s->queue.n = s->head = 0;
    undo(s, mark);
    clear_cone(s);
    return r;
}

/* With the definitions of the nearest `least` levels, then of more, to `most`. */
static bool climb(Solver *s, const Bound *b, uint32_t n, uint32_t least, uint32_t most)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->v.data[b[i].v].level > deepest) deepest = s->v.data[b[i].v].level;
    if (deepest > most) deepest = most;
    uint32_t before = UINT32_MAX;
    for (uint32_t d = least < deepest ? least : deepest; d <= deepest; d++) {
        s->depth = d;
        if (ask(s, b, n, d, before)) return true;
        if (before == s->asked && d) break; /* there is nothing deeper */
        if (s->spent && s->limit == MODERATE_BUDGET && !s->low_first) break; /* solver_never is likelier to help */
        before = s->asked;
    }
    return false;
}

/* What the list implies by propagation through the whole cone; false when it is impossible. */
static bool imply(Solver *s, const Bound *b, uint32_t n)
{
    build_cone(s, b, n, MAX_DEPTH);
    uint32_t mark = s->trail.n;
    bool ok = true;
    for (uint32_t i = 0; i < s->active.n; i++) enqueue(s, s->active.data[i]);
    for (uint32_t i = 0; ok && i < n; i++) ok = narrow(s, b[i].v, b[i].lo, b[i].hi);
    if (!propagate(s)) ok = false;
    for (uint32_t i = 0; ok && i < s->cone.n; i++) {
        const VarInfo *x = &s->v.data[s->cone.data[i]];
        if (x->lo != x->plo || x->hi != x->phi) vec_push(&s->implied, ((Bound){s->cone.data[i], x->lo, x->hi}));
    }
    undo(s, mark);
    clear_cone(s);
    return ok;
}

/* First with as many levels as the last such question took: they are alike. */
static bool never(Solver *s, const Bound *b, uint32_t n, uint32_t budget)
{
    bool r = !imply(s, b, n);
    s->low_first = true;
    s->limit = budget;
    if (!r && s->never_depth) r = ask(s, b, n, s->never_depth, UINT32_MAX);
    if (!r && (r = climb(s, b, n, s->never_depth ? MAX_DEPTH : 0, MAX_DEPTH))) s->never_depth = s->depth;
    s->low_first = false;
    s->implied.n = 0;
    return r;
}

bool search_pair(Solver *s, const Bound *b, Effort e)
{
    static const uint32_t budget[] = {16, MODERATE_BUDGET, 3000}, depth[] = {2, MAX_DEPTH, MAX_DEPTH};
    if (sample_shows(s, b, 2)) return false;
    s->limit = budget[e];
    s->spent = false;
    return climb(s, b, 2, 0, depth[e]) || (e > SHALLOW && s->spent && never(s, b, 2, budget[e]));
}

bool search_near(Solver *s, const Bound *b, uint32_t n)
{
    s->limit = BUDGET;
    s->spent = false;
    return climb(s, b, n, 0, NEAR);
}

bool search_impossible(Solver *s, const Bound *b, uint32_t n)
{
    s->limit = BUDGET;
    s->spent = false;
    return climb(s, b, n, NEAR + 1, MAX_DEPTH);
}

bool search_ask(Solver *s, const Bound *b, uint32_t n, uint32_t depth)
{
    s->limit = BUDGET;
    return ask(s, b, n, depth, UINT32_MAX);
}

/* What costs little first; then a search over bits, which may find an example; only then one as deep as it goes. */
bool solver_impossible(Solver *s, const Bound *b, uint32_t n)
{
    if (sample_shows(s, b, n)) return false;
    if (search_near(s, b, n) || encoder_impossible(s->encoder, b, n)) return true;
    return !sample_shows(s, b, n) && search_impossible(s, b, n);
}

bool solver_never(Solver *s, const Bound *b, uint32_t n)
{
    if (sample_shows(s, b, n)) return false;
    bool no = !imply(s, b, n);
    s->implied.n = 0;
    if (no || encoder_impossible(s->encoder, b, n)) return true;
    if (s->deep >= DEEP || sample_shows(s, b, n)) return false;
    uint64_t before = s->nodes;
    bool r = never(s, b, n, BUDGET);
    s->deep += r ? 0 : s->nodes - before;
    return r;
}
