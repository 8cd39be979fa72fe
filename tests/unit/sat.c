/* unit/sat.c: the proof's search over bits against enumeration: random inequalities, and random definitions (tables, conditions, factors) over a few free
 * variables. "No" must be right, many questions in a row on one solver with what it has learnt; nearly always it must also be found. */
#include "../../backend/prove_sat.h"
#include "../../backend/prove_solver.h"
#include "random64.h"
#include <stdlib.h>

static int failures, missed, denied;
#define CHECK(cond, ...) ((void)((cond) || (failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))))

static uint32_t below(uint32_t n) { return (uint32_t)(random64() % n); }
static int32_t between(int32_t lo, int32_t hi) { return lo + (int32_t)below((uint32_t)(hi - lo + 1)); }

/* ---- inequalities ---- */
enum { BITS = 9, ROWS = 14, ASKS = 30 };
typedef struct {
    SatTerm t[BITS];
    uint32_t n;
    int64_t bound;
} Row;

static bool is_true(SatLit l, uint32_t bits) { return (bits >> (l >> 1) & 1) != (l & 1); }

static bool row_holds(const Row *r, uint32_t bits)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < r->n; i++) sum += is_true(r->t[i].l, bits) ? r->t[i].c : 0;
    return sum >= r->bound;
}

static bool satisfiable(const Row *r, uint32_t rows, const SatLit *l, uint32_t n)
{
    for (uint32_t bits = 0; bits < 1u << BITS; bits++) {
        bool all = true;
        for (uint32_t i = 0; all && i < n; i++) all = is_true(l[i], bits);
        for (uint32_t i = 0; all && i < rows; i++) all = row_holds(&r[i], bits);
        if (all) return true;
    }
    return false;
}

static Row random_row(void)
{
    Row r = {.n = 1 + below(5)};
    int64_t most = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        r.t[i] = (SatTerm){below(2 * BITS), between(-3, 3)};
        most += abs(r.t[i].c);
    }
    r.bound = between((int32_t)-most, (int32_t)most / 2);
    return r;
}

static void inequalities(void)
{
    Sat *s = sat_new();
    Row row[ROWS];
    uint32_t rows = 0;
    row[0] = (Row){.n = BITS, .bound = 1}; /* so that every question meets every bit */
    for (uint32_t i = 0; i < BITS; i++) row[0].t[i] = (SatTerm){sat_bit(s), 1};
    sat_fact(s, row[0].t, BITS, 1, true);
    rows = 1;
    for (int ask = 0; ask < ASKS; ask++) {
        for (; rows < ROWS * (1 + (uint32_t)ask) / ASKS; rows++) {
            row[rows] = random_row();
            if (rows % 2) sat_fact(s, row[rows].t, row[rows].n, row[rows].bound, rows % 4 == 1);
            else sat_define(s, row[rows].t[0].l, row[rows].t, row[rows].n, row[rows].bound);
        }
        SatLit l[3];
        uint32_t n = 1 + below(3);
        for (uint32_t i = 0; i < n; i++) l[i] = below(2 * BITS);
        bool can = satisfiable(row, rows, l, n);
        SatAnswer deep = sat_ask(s, l, n, UINT32_MAX, UINT32_MAX), near = sat_ask(s, l, n, below(3), 1 + below(20));
        CHECK(deep != SAT_NO || !can, "an assignment is denied");
        CHECK(near != SAT_NO || !can, "an assignment is denied by a small question");
        missed += !can && deep != SAT_NO, denied += deep == SAT_NO; /* one without any literal is not seen */
    }
    sat_free(s);
}

/* ---- definitions ---- */
enum { FREE = 6, VARS = 22 };
typedef struct {
    Solver *s;
    Var v[VARS];
    uint32_t n;
    VEC(int64_t) value; /* [assignment][VARS] */
    uint32_t cases;
} World;

static Var any(const World *w) { return w->v[below(w->n)]; }

static int64_t value_of(const VarInfo *x, const int64_t *at)
{
    int64_t sum = x->kind == VAR_DEF ? x->k : 0;
    for (uint32_t i = 0; i < x->nlin; i++) sum += x->lin[i].c * at[x->lin[i].v];
    for (uint32_t i = 0; i < x->ntable; i++) {
        const Table *t = &x->table[i];
        if (t->g != NO_VAR && at[t->g] < t->gtop) continue;
        sum += (int64_t)t->t[t->s == NO_VAR ? 0 : at[t->s] - t->s0] * (t->m == NO_VAR ? 1 : at[t->m] + t->mk);
    }
    return sum;
}

static Var random_form(World *w)
{
    VarTerm t[3];
    uint32_t n = 0, want = 2 + below(2);
    for (Var v = 0; v < w->v[w->n - 1] + 1 && n < want; v++) /* rising, no two of one variable */
        if (below(4) == 0 && solver_var(w->s, v)->hi - solver_var(w->s, v)->lo < 8) t[n++] = (VarTerm){v, below(2) ? 1 : -1};
    return n ? solver_lin(w->s, t, n) : w->v[0];
}

static Table random_table(World *w)
{
    Table t = {.g = NO_VAR, .s = NO_VAR, .m = NO_VAR, .mk = between(-1, 2), .n = 1};
    if (below(3)) t.g = random_form(w), t.gtop = solver_var(w->s, t.g)->hi;
    if (below(2)) t.s = any(w);
    if (below(3) == 0) t.m = any(w);
    if (t.s != NO_VAR) t.s0 = solver_var(w->s, t.s)->lo, t.n = solver_var(w->s, t.s)->hi - t.s0 + 1;
    t.t = solver_table(w->s, t.n);
    for (int32_t i = 0; i < t.n; i++) t.t[i] = between(-2, 2);
    return t;
}

static void random_definition(World *w)
{
    Table t[3];
    uint32_t n = 1 + below(3);
    for (uint32_t i = 0; i < n; i++) t[i] = random_table(w);
    VarTerm lin = {any(w), between(1, 2)};
    Var v = solver_def(w->s, between(-1, 1), &lin, below(2), t, n);
    if (solver_var(w->s, v)->hi - solver_var(w->s, v)->lo < 30) w->v[w->n++] = v;
}

/* Values of every variable, forms too, for every choice of the free ones. */
static int64_t *evaluate(const World *w, uint32_t vars, uint32_t choice)
{
    int64_t *at = xrealloc(NULL, vars * sizeof *at);
    for (Var v = 0; v < vars; v++) {
        const VarInfo *x = solver_var(w->s, v);
        if (x->kind != VAR_FREE) at[v] = value_of(x, at);
        else {
            uint32_t n = (uint32_t)(x->hi - x->lo + 1);
            at[v] = x->lo + (int64_t)(choice % n), choice /= n;
        }
    }
    return at;
}

static void definitions(void)
{
    Pool *pool = pool_new();
    World w = {.s = solver_new(pool), .cases = 1};
    for (int i = 0; i < FREE; i++) {
        int32_t top = i ? 1 : 2;
        w.v[w.n++] = solver_free_var(w.s, 0, top);
        w.cases *= (uint32_t)top + 1;
    }
    for (int i = 0; i < 60 && w.n < VARS; i++) random_definition(&w);
    uint32_t vars = w.v[w.n - 1] + 1;
    for (int ask = 0; ask < 12; ask++) {
        Bound b[2];
        uint32_t n = 1 + below(2);
        for (uint32_t i = 0; i < n; i++) {
            const VarInfo *x = solver_var(w.s, b[i].v = any(&w));
            b[i].lo = between(x->lo, x->hi), b[i].hi = between(b[i].lo, x->hi);
        }
        bool no = encoder_impossible(w.s->encoder, b, n), can = false;
        for (uint32_t c = 0; c < w.cases && !can; c++) {
            int64_t *at = evaluate(&w, vars, c);
            can = true;
            for (uint32_t i = 0; i < n; i++) can &= at[b[i].v] >= b[i].lo && at[b[i].v] <= b[i].hi;
            free(at);
        }
        CHECK(!no || !can, "definitions: what is possible is called impossible");
        missed += !no && !can, denied += no;
    }
    solver_free(w.s);
    pool_free(pool);
}

/* What solver_prove calls the range of a sum of gates, with conditions that exclude each other and such that do not. */
static void ranges(void)
{
    Pool *pool = pool_new();
    World w = {.s = solver_new(pool), .cases = 1u << FREE};
    Table t[8];
    uint32_t n = 3 + below(6);
    for (int i = 0; i < FREE; i++) w.v[w.n++] = solver_free_var(w.s, 0, 1);
    for (uint32_t i = 0; i < n; i++) { /* the first two bits make groups, nearly always */
        VarTerm g[4] = {{w.v[0], below(2) ? 1 : -1}, {w.v[1], below(2) ? 1 : -1}, {w.v[2 + below(2)], below(2) ? 1 : -1}, {w.v[4 + below(2)], below(2) ? 1 : -1}};
        uint32_t first = below(8) == 0;
        t[i] = (Table){.s = NO_VAR, .g = solver_lin(w.s, g + first, 2 + below(3 - first)), .m = NO_VAR, .n = 1, .t = solver_table(w.s, 1)};
        t[i].gtop = solver_var(w.s, t[i].g)->hi, t[i].t[0] = below(3) ? 1 : -1;
    }
    Var v = solver_def(w.s, between(-1, 1), NULL, 0, t, n);
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (uint32_t c = 0; c < w.cases; c++) {
        int64_t *at = evaluate(&w, v + 1, c);
        least = at[v] < least ? at[v] : least, most = at[v] > most ? at[v] : most;
        free(at);
    }
    int32_t lo = (int32_t)least + between(-1, 1), hi = (int32_t)most + between(-1, 1);
    bool holds = lo <= least && hi >= most, shown = solver_prove(w.s, v, lo, hi);
    CHECK(holds || !shown, "ranges: [%d, %d] is called the range of [%d, %d]", lo, hi, (int)least, (int)most);
    CHECK(solver_var(w.s, v)->lo <= least && solver_var(w.s, v)->hi >= most, "ranges: a value was taken away");
    missed += holds && !shown, denied += shown;
    solver_free(w.s);
    pool_free(pool);
}

int main(void)
{
    for (int i = 0; i < 400; i++) inequalities();
    for (int i = 0; i < 400; i++) definitions();
    for (int i = 0; i < 2000; i++) ranges();
    CHECK(missed * 50 < denied, "%d impossible questions are not shown so, %d are", missed, denied);
    if (failures) fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}
