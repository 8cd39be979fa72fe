/* prove_solve.c: ranges of integer variables, by bounds propagation and case split over their definitions.
 *
 * A question ("can v be above hi?", "can these hold together?") is asked of the definitions in the cone below it, first of the nearest
 * level, then of deeper ones; variables whose definition is left out count as free in their proved range, which is sound. Propagation narrows
 * ranges in both directions through linear forms and tables; when it stops short of a contradiction a variable is split in two. The answer
 * is "impossible" or "not shown"; the number of splits is bounded. Requires: definitions refer to older variables only. */
#include "prove_priv.h"
#include <stdlib.h>

enum { CHUNK = 1 << 18, BUDGET = 3000, MAX_DEPTH = 12, MAX_VALUES = 1 << 16, PEELS = 16, WEIGHT = 4096, MAX_LITERALS = 12, MAX_FACTS = 500 };

typedef struct {
    Var v;
    int32_t lo, hi;
} Old;
typedef struct {
    Var form;
    bool whole;    /* reaching one of its variables reaches them all; else it counts only when all are reached anyway */
    uint32_t next; /* index + 1 */
} Side;
/* An addend of the question's definition that is not 0 where the search ended. */
typedef struct {
    Var g;
    int32_t gtop;
} Arm;
typedef struct {
    Var user;      /* the constraint of this LIN or DEF */
    uint32_t next; /* index + 1 */
} Watch;

struct Solver {
    Pool *pool;
    char *chunk;
    size_t left;
    VEC(VarInfo) v;
    Var *hash;
    uint32_t hash_cap, nhash;
    /* one question */
    uint32_t *seen;     /* per var: 1 + depth left when it was reached, 0: not in the cone */
    uint32_t *watch;    /* per var: first watch + 1 */
    uint8_t *queued;
    uint32_t *count, cap;
    VEC(Var) cone, active, queue;
    VEC(Watch) watches;
    VEC(Old) trail;
    VEC(int64_t) part;
    VEC(Var) counted;
    VEC(Bound) implied; /* what else holds in this question */
    VEC(Side) sides;
    VEC(Arm) arms;
    Var model_of;     /* collect arms of this definition; NO_VAR: no */
    int model_sign;
    bool found;       /* the search ended with everything decided */
    uint64_t *failed; /* pairs of literals that were not shown to exclude each other: hash of keys */
    uint32_t failed_cap, nfailed;
    int32_t *list; /* scratch of MAX_VALUES */
    uint32_t head;
    uint32_t budget;
    uint32_t asked;   /* definitions and forms in it */
    bool spent;       /* a search of the last question ended for lack of budget */
    bool low_first;   /* split definitions of the lowest level first, else those nearest the question */
    uint64_t nodes;
};

Solver *solver_new(Pool *pool)
{
    Solver *s = pool_alloc(pool, sizeof *s);
    s->pool = pool;
    s->model_of = NO_VAR;
    return s;
}

void solver_free(Solver *s)
{
    void *blocks[] = {s->v.data, s->hash, s->seen, s->watch, s->queued, s->count, s->implied.data, s->sides.data, s->arms.data, s->failed, s->cone.data, s->active.data, s->queue.data,
                      s->watches.data, s->trail.data, s->part.data, s->counted.data};
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

VarInfo *solver_var(const Solver *s, Var v) { return &s->v.data[v]; }
static void add_side(Solver *s, Var v, Var form, bool whole)
{
    vec_push(&s->sides, ((Side){form, whole, s->v.data[v].side}));
    s->v.data[v].side = s->sides.n;
}
void solver_attach(Solver *s, Var v, Var form) { add_side(s, v, form, true); }
uint64_t solver_nodes(const Solver *s) { return s->nodes; }

/* ---- variables ---- */
static void *copy(Solver *s, const void *p, size_t bytes)
{
    size_t n = (bytes + 15) & ~(size_t)15;
    if (n > s->left) {
        s->left = n > CHUNK ? n : CHUNK;
        s->chunk = pool_alloc(s->pool, s->left);
    }
    void *r = s->chunk;
    if (p && bytes) memcpy(r, p, bytes);
    s->chunk += n, s->left -= n;
    return r;
}

static Var push(Solver *s, VarInfo x)
{
    x.plo = x.lo, x.phi = x.hi;
    Var v = vec_push(&s->v, x);
    if (v < s->cap) return v;
    uint32_t cap = s->cap ? 2 * s->cap : 4096;
#define GROW(a) (a = xrealloc(a, cap * sizeof *a), memset(a + s->cap, 0, (cap - s->cap) * sizeof *a))
    GROW(s->seen), GROW(s->watch), GROW(s->queued), GROW(s->count);
    s->cap = cap;
    return v;
}

Var solver_free_var(Solver *s, int32_t lo, int32_t hi) { return push(s, (VarInfo){.kind = VAR_FREE, .lo = lo, .hi = hi}); }

void solver_limit(Solver *s, Var v, int32_t lo, int32_t hi)
{
    VarInfo *x = &s->v.data[v];
    if (lo > x->lo) x->lo = x->plo = lo;
    if (hi < x->hi) x->hi = x->phi = hi;
}

static uint32_t lin_hash(const VarTerm *t, uint32_t n)
{
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = (h ^ ((uint64_t)t[i].v << 32 | (uint32_t)t[i].c)) * 0xff51afd7ed558ccdull, h ^= h >> 31;
    return (uint32_t)h;
}

static void rehash(Solver *s)
{
    s->hash_cap = s->hash_cap ? 2 * s->hash_cap : 4096;
    s->hash = xrealloc(s->hash, s->hash_cap * sizeof *s->hash);
    memset(s->hash, 0xff, s->hash_cap * sizeof *s->hash);
    for (Var v = 0; v < s->v.n; v++) {
        const VarInfo *x = &s->v.data[v];
        if (x->kind != VAR_LIN) continue;
        uint32_t k = lin_hash(x->lin, x->nlin) & (s->hash_cap - 1);
        while (s->hash[k] != NO_VAR) k = (k + 1) & (s->hash_cap - 1);
        s->hash[k] = v;
    }
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }
static int32_t clamp(int64_t x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x; }

static void lin_bounds(const Solver *s, const VarTerm *t, uint32_t n, int64_t *lo, int64_t *hi)
{
    for (uint32_t i = 0; i < n; i++) {
        const VarInfo *x = &s->v.data[t[i].v];
        *lo += (int64_t)t[i].c * (t[i].c > 0 ? x->lo : x->hi);
        *hi += (int64_t)t[i].c * (t[i].c > 0 ? x->hi : x->lo);
    }
}

static uint32_t level_of(const Solver *s, const VarTerm *t, uint32_t n)
{
    uint32_t l = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->v.data[t[i].v].level > l) l = s->v.data[t[i].v].level;
    return l;
}

Var solver_lin(Solver *s, const VarTerm *t, uint32_t n)
{
    if (n == 1 && t->c == 1) return t->v;
    if (2 * (s->nhash + 1) > s->hash_cap) rehash(s);
    uint32_t k = lin_hash(t, n) & (s->hash_cap - 1);
    for (; s->hash[k] != NO_VAR; k = (k + 1) & (s->hash_cap - 1)) {
        const VarInfo *x = &s->v.data[s->hash[k]];
        if (x->nlin == n && !memcmp(x->lin, t, n * sizeof *t)) return s->hash[k];
    }
    int64_t lo = 0, hi = 0;
    lin_bounds(s, t, n, &lo, &hi);
    Var v = push(s, (VarInfo){.kind = VAR_LIN, .lo = clamp(lo), .hi = clamp(hi), .nlin = n, .lin = copy(s, t, n * sizeof *t), .level = level_of(s, t, n)});
    s->nhash++;
    return s->hash[k] = v;
}

static int by_int(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* old plus c times each value of x; false when that is too many. */
static bool sums(int32_t *v, uint32_t *n, const VarInfo *x, int32_t c)
{
    int64_t steps = (int64_t)x->hi - x->lo + 1, m = 0;
    if (steps * *n > MAX_VALUES) return false;
    uint32_t old = *n;
    for (int64_t i = steps - 1; i >= 0; i--) /* the block of i = 0 last: it is the old one's place */
        for (uint32_t k = 0; k < old; k++) v[(size_t)i * old + k] = clamp(v[k] + (int64_t)c * (x->lo + i));
    qsort(v, (size_t)steps * old, sizeof *v, by_int);
    for (int64_t i = 0; i < steps * old; i++)
        if (!m || v[m - 1] != v[i]) v[m++] = v[i];
    *n = (uint32_t)m;
    return true;
}

static uint32_t list_values(Solver *s, const VarInfo *x, int32_t *v)
{
    uint32_t n = 1;
    bool units = true;
    for (uint32_t i = 0; i < x->nlin; i++) units &= x->lin[i].c == 1 || x->lin[i].c == -1;
    if (x->kind != VAR_LIN || units) {
        if ((int64_t)x->hi - x->lo >= MAX_VALUES) return 0;
        for (n = 0; n <= (uint32_t)(x->hi - x->lo); n++) v[n] = x->lo + (int32_t)n;
        return n;
    }
    v[0] = 0;
    for (uint32_t i = 0; i < x->nlin; i++)
        if (!sums(v, &n, &s->v.data[x->lin[i].v], x->lin[i].c)) return 0;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (v[i] >= x->lo && v[i] <= x->hi) v[m++] = v[i];
    return m;
}

const Values *solver_values(Solver *s, Var v)
{
    VarInfo x = s->v.data[v];
    if (x.values && x.values->v[0] == x.lo && x.values->v[x.values->n - 1] == x.hi) return x.values;
    if (!s->list) s->list = pool_array(s->pool, MAX_VALUES, sizeof *s->list);
    uint32_t n = list_values(s, &x, s->list);
    if (!n) return NULL;
    Values r = {n, copy(s, s->list, n * sizeof *s->list)};
    return s->v.data[v].values = copy(s, &r, sizeof r);
}

static int8_t direction(const Table *t)
{
    bool up = true, down = true;
    for (int32_t i = 1; i < t->n; i++) up &= t->t[i] >= t->t[i - 1], down &= t->t[i] <= t->t[i - 1];
    return up ? 1 : down ? -1 : 0;
}

/* Range of T over s's range. */
static void table_bounds(const Solver *sv, const Table *t, int64_t *lo, int64_t *hi)
{
    int32_t a = 0, b = 0;
    if (t->s != NO_VAR) a = sv->v.data[t->s].lo - t->s0, b = sv->v.data[t->s].hi - t->s0;
    int32_t x = t->t[a], y = t->t[b];
    if (t->mono) {
        *lo = x < y ? x : y, *hi = x < y ? y : x;
        return;
    }
    int32_t min = x, max = x;
    for (int32_t i = a + 1; i <= b; i++) min = t->t[i] < min ? t->t[i] : min, max = t->t[i] > max ? t->t[i] : max;
    *lo = min, *hi = max;
}

/* Whether the condition g == gtop: 1 holds, 0 does not, -1 is open. */
static int guard_state(const Solver *s, const Table *t)
{
    if (t->g == NO_VAR || s->v.data[t->g].lo >= t->gtop) return 1;
    return s->v.data[t->g].hi < t->gtop ? 0 : -1;
}

static void product(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi)
{
    int64_t c[4] = {alo * blo, alo * bhi, ahi * blo, ahi * bhi};
    *lo = *hi = c[0];
    for (int i = 1; i < 4; i++) *lo = c[i] < *lo ? c[i] : *lo, *hi = c[i] > *hi ? c[i] : *hi;
}

/* Of T(s) * (m + mk), the condition aside. */
static void value_bounds(const Solver *s, const Table *t, int64_t *lo, int64_t *hi)
{
    table_bounds(s, t, lo, hi);
    if (t->m == NO_VAR) return;
    const VarInfo *m = &s->v.data[t->m];
    product(*lo, *hi, (int64_t)m->lo + t->mk, (int64_t)m->hi + t->mk, lo, hi);
}

static void term_bounds(const Solver *s, const Table *t, int64_t *lo, int64_t *hi)
{
    int g = guard_state(s, t);
    *lo = *hi = 0;
    if (g == 0) return;
    value_bounds(s, t, lo, hi);
    if (g == 1) return;
    *lo = *lo < 0 ? *lo : 0, *hi = *hi > 0 ? *hi : 0;
}

int32_t *solver_table(Solver *s, int32_t n)
{
    return copy(s, NULL, (size_t)n * sizeof(int32_t));
}

Var solver_def(Solver *s, int32_t k, const VarTerm *lin, uint32_t nlin, const Table *table, uint32_t ntable)
{
    if (!k && !ntable && nlin == 1 && lin->c == 1) return lin->v;
    int64_t lo = k, hi = k;
    lin_bounds(s, lin, nlin, &lo, &hi);
    VarInfo x = {.kind = VAR_DEF, .k = k, .nlin = nlin, .ntable = ntable, .lin = copy(s, lin, nlin * sizeof *lin),
                 .table = copy(s, table, ntable * sizeof *table), .level = level_of(s, lin, nlin)};
    for (uint32_t i = 0; i < ntable; i++) {
        Table *t = &x.table[i];
        int64_t a, b;
        t->mono = direction(t);
        term_bounds(s, t, &a, &b);
        lo += a, hi += b;
        Var part[3] = {t->s, t->g, t->m};
        for (int k = 0; k < 3; k++)
            if (part[k] != NO_VAR && s->v.data[part[k]].level > x.level) x.level = s->v.data[part[k]].level;
    }
    x.lo = clamp(lo), x.hi = clamp(hi);
    x.level++;
    return push(s, x);
}

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
    const VarInfo x = s->v.data[v];
    vec_push(&s->active, v);
    uint32_t below = x.kind == VAR_DEF ? depth - 1 : depth;
    for (uint32_t i = 0; i < x.nlin; i++) watch(s, x.lin[i].v, v, below);
    for (uint32_t i = 0; i < x.ntable; i++) {
        Var part[3] = {x.table[i].s, x.table[i].g, x.table[i].m};
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
    if (lo > x->lo) x->lo = clamp(lo);
    if (hi < x->hi) x->hi = clamp(hi);
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
    product(v, v, mlo, mhi, &p, &q);
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
    const VarInfo x = s->v.data[v];
    uint32_t n = x.nlin + x.ntable;
    while (s->part.n < 2 * n) vec_push(&s->part, 0);
    int64_t *part = s->part.data, lo = x.k, hi = x.k;
    for (uint32_t i = 0; i < n; i++) {
        part[2 * i] = part[2 * i + 1] = 0;
        if (i < x.nlin) lin_bounds(s, &x.lin[i], 1, &part[2 * i], &part[2 * i + 1]);
        else term_bounds(s, &x.table[i - x.nlin], &part[2 * i], &part[2 * i + 1]);
        lo += part[2 * i], hi += part[2 * i + 1];
    }
    if (!narrow(s, v, lo, hi)) return false;
    int64_t vlo = s->v.data[v].lo, vhi = s->v.data[v].hi;
    if (vlo <= lo && vhi >= hi) return true;
    for (uint32_t i = 0; i < n; i++) {
        int64_t plo = vlo - (hi - part[2 * i + 1]), phi = vhi - (lo - part[2 * i]);
        if (plo <= part[2 * i] && phi >= part[2 * i + 1]) continue;
        bool ok = i < x.nlin ? narrow_scaled(s, x.lin[i].v, x.lin[i].c, plo, phi) : propagate_table(s, &x.table[i - x.nlin], plo, phi);
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

/* The nearest to the question; or gates that must be on before gates that must not all be, the lowest first. */
static bool presses(const Solver *s, Var a, Var b)
{
    const VarInfo *x = &s->v.data[a], *y = &s->v.data[b];
    if (!s->low_first) return false;
    return x->kind != y->kind ? x->kind == VAR_DEF : x->level < y->level;
}

static Var most_pressing(const Solver *s)
{
    Var best = NO_VAR;
    for (uint32_t i = 0; i < s->active.n; i++) {
        Var v = s->active.data[i];
        if ((best == NO_VAR || presses(s, v, best)) && undecided(s, v)) best = v;
        if (best != NO_VAR && !s->low_first) break;
    }
    return best;
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
    s->budget = BUDGET;
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

bool solver_never(Solver *s, const Bound *b, uint32_t n)
{
    s->low_first = true;
    bool r = !imply(s, b, n) || solver_impossible(s, b, n);
    s->low_first = false;
    s->implied.n = 0;
    return r;
}

bool solver_impossible(Solver *s, const Bound *b, uint32_t n)
{
    uint32_t deepest = 0;
    s->spent = false;
    for (uint32_t i = 0; i < n; i++)
        if (s->v.data[b[i].v].level > deepest) deepest = s->v.data[b[i].v].level;
    if (deepest > MAX_DEPTH) deepest = MAX_DEPTH;
    uint32_t before = UINT32_MAX;
    for (uint32_t d = 0; d <= deepest; d++) {
        if (ask(s, b, n, d, before)) return true;
        if (before == s->asked && d) break; /* there is nothing deeper */
        before = s->asked;
    }
    return false;
}

/* ---- learning ----
 * A sum of exclusive gates is refuted at its own level once it is known which of its literals exclude each other; those facts
 * come from deeper down, are found as the search runs into their absence, and are kept. */
typedef struct {
    Var v;
    bool high; /* v is at its largest value, else at its least */
} Literal;

static Bound literal_bound(const Solver *s, Literal l)
{
    int32_t x = l.high ? s->v.data[l.v].hi : s->v.data[l.v].lo;
    return (Bound){l.v, x, x};
}

static bool failed_before(Solver *s, uint64_t key)
{
    if (2 * (s->nfailed + 1) > s->failed_cap) {
        uint64_t *old = s->failed;
        uint32_t cap = s->failed_cap;
        s->failed_cap = cap ? 2 * cap : 4096;
        s->failed = memset(xrealloc(NULL, s->failed_cap * sizeof *s->failed), 0, s->failed_cap * sizeof *s->failed);
        s->nfailed = 0;
        for (uint32_t i = 0; i < cap; i++)
            if (old[i]) failed_before(s, old[i]);
        free(old);
    }
    uint32_t k = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 33) & (s->failed_cap - 1);
    for (; s->failed[k]; k = (k + 1) & (s->failed_cap - 1))
        if (s->failed[k] == key) return true;
    s->failed[k] = key;
    s->nfailed++;
    return false;
}

/* a and b never hold together: as a linear form with a bound. */
static void remember(Solver *s, Literal a, Literal b)
{
    if (a.v > b.v) {
        Literal t = a;
        a = b, b = t;
    }
    VarTerm t[2] = {{a.v, a.high ? 1 : -1}, {b.v, b.high ? 1 : -1}};
    Var f = solver_lin(s, t, 2);
    s->v.data[f].phi = --s->v.data[f].hi;
    add_side(s, a.v, f, false);
}

static bool exclude(Solver *s, Literal a, Literal b)
{
    const VarInfo *x = &s->v.data[a.v], *y = &s->v.data[b.v];
    if (a.v == b.v || x->hi - x->lo != 1 || y->hi - y->lo != 1) return false;
    uint64_t ka = 2ull * a.v + a.high, kb = 2ull * b.v + b.high;
    if (failed_before(s, (ka < kb ? ka << 32 | kb : kb << 32 | ka) + 1)) return false; /* or known already */
    Bound both[2] = {literal_bound(s, a), literal_bound(s, b)};
    if (!solver_impossible(s, both, 2) && !(s->spent && solver_never(s, both, 2))) return false;
    remember(s, a, b);
    return true;
}

bool solver_exclusive(Solver *s, Var x, Var y)
{
    VarTerm t[2] = {{x < y ? x : y, 1}, {x < y ? y : x, 1}};
    Var f = solver_lin(s, t, 2);
    return s->v.data[f].hi < s->v.data[x].hi + s->v.data[y].hi || exclude(s, (Literal){x, true}, (Literal){y, true});
}

static uint32_t literals(const Solver *s, Arm a, Literal *out)
{
    const VarInfo *x = &s->v.data[a.g];
    if (x->kind != VAR_LIN) {
        out[0] = (Literal){a.g, true};
        return 1;
    }
    uint32_t n = x->nlin < MAX_LITERALS ? x->nlin : MAX_LITERALS;
    for (uint32_t i = 0; i < n; i++) out[i] = (Literal){x->lin[i].v, x->lin[i].c > 0};
    return n;
}

/* One more fact about two of the arms. */
static bool learn(Solver *s)
{
    Literal a[MAX_LITERALS], b[MAX_LITERALS];
    for (uint32_t i = 0; i < s->arms.n; i++)
        for (uint32_t j = 0; j < i; j++) {
            uint32_t na = literals(s, s->arms.data[i], a), nb = literals(s, s->arms.data[j], b);
            for (uint32_t x = 0; x < na; x++)
                for (uint32_t y = 0; y < nb; y++)
                    if (exclude(s, a[x], b[y])) return true;
        }
    return false;
}

static bool prove_side(Solver *s, Bound b, int sign)
{
    if (s->v.data[b.v].kind == VAR_DEF)
        for (int i = 0; i < MAX_FACTS; i++) {
            s->model_of = b.v, s->model_sign = sign;
            bool r = ask(s, &b, 1, 1, UINT32_MAX);
            s->model_of = NO_VAR;
            if (r) return true;
            if (!s->found || !learn(s)) break;
        }
    return solver_impossible(s, &b, 1);
}

bool solver_prove(Solver *s, Var v, int32_t lo, int32_t hi)
{
    const VarInfo x = s->v.data[v];
    if (x.hi > hi && !prove_side(s, (Bound){v, hi + 1, x.hi}, 1)) return false;
    if (x.lo < lo && !prove_side(s, (Bound){v, x.lo, lo - 1}, -1)) return false;
    solver_limit(s, v, lo, hi);
    return true;
}

void solver_peel(Solver *s, Var v)
{
    for (int i = 0; i < PEELS && s->v.data[v].lo < s->v.data[v].hi; i++) {
        int32_t hi = s->v.data[v].hi;
        if (!solver_impossible(s, &(Bound){v, hi, hi}, 1)) break;
        solver_limit(s, v, INT32_MIN, hi - 1);
    }
    for (int i = 0; i < PEELS && s->v.data[v].lo < s->v.data[v].hi; i++) {
        int32_t lo = s->v.data[v].lo;
        if (!solver_impossible(s, &(Bound){v, lo, lo}, 1)) break;
        solver_limit(s, v, lo + 1, INT32_MAX);
    }
}

bool solver_fixed(Solver *s, Bound given, Var v, int32_t *value)
{
    const VarInfo x = s->v.data[v];
    if (solver_impossible(s, (Bound[]){given, {v, x.lo + 1, x.hi}}, 2)) *value = x.lo;
    else if (solver_impossible(s, (Bound[]){given, {v, x.lo, x.hi - 1}}, 2)) *value = x.hi;
    else return false;
    return true;
}
