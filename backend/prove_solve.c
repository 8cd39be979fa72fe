/* prove_solve.c: integer variables: linear forms and definitions by tables, the values they can have, their bounds. The questions about them
 * are in prove_search.c and prove_learn.c. Requires: definitions refer to older variables only. */
#include "prove_solver.h"
#include <stdlib.h>

enum { CHUNK = 1 << 18, MAX_VALUES = 1 << 16 };

Solver *solver_new(Pool *pool)
{
    Solver *s = pool_alloc(pool, sizeof *s);
    s->pool = pool;
    s->model_of = s->last_apart = NO_VAR;
    s->encoder = encoder_new(s);
    return s;
}

void solver_free(Solver *s)
{
    void *blocks[] = {s->v.data, s->hash, s->seen, s->watch, s->queued, s->count, s->implied.data, s->sides.data, s->arms.data, s->samples.data,
                      s->free.data, s->fact, s->cone.data, s->active.data, s->queue.data, s->watches.data, s->trail.data, s->part.data, s->counted.data};
    encoder_free(s->encoder);
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    for (unsigned i = 0; i < EXAMPLES; i++) free(s->example[i].data);
}

VarInfo *solver_var(const Solver *s, Var v) { return &s->v.data[v]; }
void solver_side(Solver *s, Var v, Var form, bool whole)
{
    vec_push(&s->sides, ((Side){form, whole, s->v.data[v].side}));
    s->v.data[v].side = s->sides.n;
}
void solver_attach(Solver *s, Var v, Var form) { solver_side(s, v, form, true); }
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

static void grow_vars(Solver *s)
{
    uint32_t cap = s->cap ? 2 * s->cap : 4096;
#define GROW(a) (a = xrealloc(a, cap * sizeof *a), memset(a + s->cap, 0, (cap - s->cap) * sizeof *a))
    GROW(s->seen), GROW(s->watch), GROW(s->queued), GROW(s->count);
    s->cap = cap;
}

static Var push(Solver *s, VarInfo x)
{
    x.plo = x.lo, x.phi = x.hi;
    for (int w = 0; x.kind == VAR_FREE && w < WORLDS; w++) x.wlo[w] = x.lo, x.whi[w] = x.hi;
    Var v = vec_push(&s->v, x);
    if (v >= s->cap) grow_vars(s);
    sample_var(s, v);
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

int32_t solver_clamp(int64_t x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x; }

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
    VarInfo x = {.kind = VAR_LIN, .lo = solver_clamp(lo), .hi = solver_clamp(hi), .nlin = n, .lin = copy(s, t, n * sizeof *t), .level = level_of(s, t, n)};
    world_ranges(s, &x);
    Var v = push(s, x);
    s->nhash++;
    return s->hash[k] = v;
}

static int by_int(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* The rising values of v and, d above them, of v again: into out; returns how many. */
static uint32_t merge_shifted(const int32_t *v, uint32_t n, int64_t d, int32_t *out)
{
    uint32_t m = 0;
    for (uint32_t i = 0, j = 0; j < n;) {
        int32_t x = solver_clamp(v[j] + d), y;
        if (i < n && v[i] < x) y = v[i++];
        else y = x, j++;
        if (!m || out[m - 1] != y) out[m++] = y;
    }
    return m;
}

/* old plus c times each value of x; false when that is too many. Both lists have room for MAX_VALUES. */
static bool sums(int32_t *v, int32_t *scratch, uint32_t *n, const VarInfo *x, int32_t c)
{
    int64_t steps = (int64_t)x->hi - x->lo + 1, m = 0;
    if (steps * *n > MAX_VALUES) return false;
    uint32_t old = *n;
    if (steps == 2) { /* a bit: no need to sort */
        for (uint32_t k = 0; k < old; k++) v[k] = solver_clamp(v[k] + (int64_t)c * (c > 0 ? x->lo : x->hi));
        *n = merge_shifted(v, old, llabs(c), scratch);
        memcpy(v, scratch, *n * sizeof *v);
        return true;
    }
    for (int64_t i = steps - 1; i >= 0; i--) /* the block of i = 0 last: it is the old one's place */
        for (uint32_t k = 0; k < old; k++) v[(size_t)i * old + k] = solver_clamp(v[k] + (int64_t)c * (x->lo + i));
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
        if (!sums(v, v + MAX_VALUES, &n, &s->v.data[x->lin[i].v], x->lin[i].c)) return 0;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (v[i] >= x->lo && v[i] <= x->hi) v[m++] = v[i];
    return m;
}

const Values *solver_values(Solver *s, Var v)
{
    VarInfo x = s->v.data[v];
    if (x.values && x.values->v[0] == x.lo && x.values->v[x.values->n - 1] == x.hi) return x.values;
    if (!s->list) s->list = pool_array(s->pool, 2 * MAX_VALUES, sizeof *s->list);
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

void solver_update(Solver *s, Var v)
{
    const VarInfo *x = &s->v.data[v];
    int64_t lo = 0, hi = 0;
    if (x->kind != VAR_LIN) return;
    lin_bounds(s, x->lin, x->nlin, &lo, &hi);
    solver_limit(s, v, solver_clamp(lo), solver_clamp(hi));
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
    x.lo = solver_clamp(lo), x.hi = solver_clamp(hi);
    world_ranges(s, &x);
    x.level++;
    return push(s, x);
}
