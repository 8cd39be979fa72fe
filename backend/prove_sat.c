/* prove_sat.c: conflict-driven search over bits under linear inequalities with integer coefficients, as in pseudo-Boolean solvers (numerics.md,
 * section 10, has the argument).
 *
 * A constraint is sum of c_i l_i >= bound with c_i > 0. Its slack is the sum of the c_i of literals that are not false, less the bound: below 0 it is
 * violated, and a literal with c_i > slack must be true. A conflict is traced back to the first point at which it was certain, and the clause that
 * says so is kept: it follows from the constraints alone, whatever was assumed, so later questions have it, too.
 *
 * A question looks at the constraints that define the bits it meets, their bits, and so on (its cone); the others are not propagated. That only leaves
 * more assignments open. */
#include "prove_sat.h"
#include <stdlib.h>

enum { NONE = UINT32_MAX, RESTART = 64, MAX_LEARNT = 20000, LONG_CLAUSE = 6 };
#define DECAY 1.05
#define LARGE 1e100

typedef struct {
    uint32_t first, n;  /* its terms */
    int64_t bound, slack, most; /* most: its largest coefficient */
    uint32_t next;      /* of the same owner: index + 1 */
    bool whole, active;
} Con;
typedef struct {
    uint32_t con, next; /* index + 1 */
    int32_t c;
} Occ;
/* Why a literal is true: a constraint, a clause, or nothing. */
typedef struct {
    enum { BY_CHOICE, BY_CON, BY_CLAUSE } by;
    uint32_t at;
} Reason;
typedef struct {
    uint32_t first, n;
} Clause;
typedef VEC(uint32_t) List;
typedef struct {
    uint32_t defs, facts; /* first constraint that defines it; first that it is in: index + 1 */
    int8_t fixed;       /* 1, -1: known for good */
    bool seen, in_cone;
    uint32_t depth;     /* definitions between it and the question */
    uint32_t level, pos;
    Reason reason;
    double activity;
    uint32_t heap;      /* place in the heap, NONE: not there */
    int8_t phase;
    uint32_t modelled;  /* the question whose answer `phase` belongs to */
} Bit;
typedef struct {
    uint32_t con, next;
} Link;

struct Sat {
    VEC(Bit) bit;
    VEC(int8_t) value;  /* per literal: 1 true, -1 false, 0 open */
    VEC(Con) con;
    VEC(SatTerm) term;
    VEC(Occ) occ;       /* of the present question's constraints */
    VEC(Link) link;     /* lists of facts */
    VEC(uint32_t) first_occ; /* per literal: index + 1 */
    VEC(Clause) clause;
    VEC(SatLit) lit;    /* of the clauses */
    VEC(List) watch;    /* per literal: clauses that wait for it to become false */
    VEC(SatLit) trail;
    VEC(uint32_t) mark; /* trail length at each choice */
    VEC(uint32_t) cone, cons, heap;
    VEC(SatLit) learnt, why;
    uint32_t head;      /* trail literals that were propagated */
    double step;
    uint32_t asked;     /* questions */
};

Sat *sat_new(void)
{
    Sat *s = memset(xrealloc(NULL, sizeof *s), 0, sizeof *s);
    s->step = 1;
    return s;
}

void sat_free(Sat *s)
{
    for (uint32_t i = 0; i < s->watch.n; i++) free(s->watch.data[i].data);
    void *blocks[] = {s->bit.data, s->value.data, s->con.data, s->term.data, s->occ.data, s->link.data, s->first_occ.data, s->clause.data, s->lit.data,
                      s->watch.data, s->trail.data, s->mark.data, s->cone.data, s->cons.data, s->heap.data, s->learnt.data, s->why.data, s};
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

SatLit sat_bit(Sat *s)
{
    uint32_t b = vec_push(&s->bit, ((Bit){.heap = NONE, .phase = -1}));
    for (int i = 0; i < 2; i++) vec_push(&s->value, 0), vec_push(&s->first_occ, 0), vec_push(&s->watch, ((List){0}));
    return 2 * b;
}

/* ---- constraints ---- */
static int by_literal(const void *a, const void *b)
{
    const SatTerm *x = a, *y = b;
    return x->l < y->l ? -1 : x->l > y->l;
}

/* Positive coefficients, each bit once; returns the bound. */
static int64_t normal(SatTerm *t, uint32_t *n, int64_t bound)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (t[i].l & 1) bound -= t[i].c, t[i] = (SatTerm){sat_not(t[i].l), -t[i].c};
    qsort(t, *n, sizeof *t, by_literal);
    for (uint32_t i = 0; i < *n; i++) {
        if (k && t[k - 1].l == t[i].l) t[k - 1].c += t[i].c;
        else t[k++] = t[i];
    }
    *n = 0;
    for (uint32_t i = 0; i < k; i++) {
        if (t[i].c < 0) bound -= t[i].c, t[i] = (SatTerm){sat_not(t[i].l), -t[i].c};
        if (t[i].c) t[(*n)++] = t[i];
    }
    return bound;
}

/* The constraint's number, NONE when it always holds. */
static uint32_t add(Sat *s, const SatTerm *in, uint32_t n, int64_t bound)
{
    SatTerm *t = memcpy(xrealloc(NULL, (n + 1) * sizeof *t), in, n * sizeof *t);
    bound = normal(t, &n, bound);
    Con c = {.first = s->term.n, .n = n, .bound = bound, .slack = -bound};
    uint32_t at = s->con.n;
    for (uint32_t i = 0; bound > 0 && i < n; i++) {
        if (t[i].c > bound) t[i].c = (int32_t)bound;
        c.slack += t[i].c;
        if (t[i].c > c.most) c.most = t[i].c;
        vec_push(&s->term, t[i]);
    }
    free(t);
    if (bound <= 0) return NONE;
    vec_push(&s->con, c);
    return at;
}

void sat_define(Sat *s, SatLit owner, const SatTerm *t, uint32_t n, int64_t bound)
{
    uint32_t c = add(s, t, n, bound);
    if (c == NONE) return;
    s->con.data[c].next = s->bit.data[owner >> 1].defs;
    s->bit.data[owner >> 1].defs = c + 1;
}

void sat_fact(Sat *s, const SatTerm *t, uint32_t n, int64_t bound, bool whole)
{
    uint32_t c = add(s, t, n, bound);
    if (c == NONE) return;
    const Con x = s->con.data[c];
    s->con.data[c].whole = whole;
    for (uint32_t i = 0; i < x.n; i++) {
        Bit *b = &s->bit.data[s->term.data[x.first + i].l >> 1];
        b->facts = vec_push(&s->link, ((Link){c, b->facts})) + 1;
    }
}

/* ---- a heap of bits by activity ---- */
static void heap_put(Sat *s, uint32_t at, uint32_t b) { s->heap.data[at] = b, s->bit.data[b].heap = at; }

static void sift_up(Sat *s, uint32_t at)
{
    uint32_t b = s->heap.data[at];
    for (; at && s->bit.data[s->heap.data[(at - 1) / 2]].activity < s->bit.data[b].activity; at = (at - 1) / 2) heap_put(s, at, s->heap.data[(at - 1) / 2]);
    heap_put(s, at, b);
}

static void sift_down(Sat *s, uint32_t at)
{
    uint32_t b = s->heap.data[at];
    for (uint32_t k; (k = 2 * at + 1) < s->heap.n; at = k) {
        if (k + 1 < s->heap.n && s->bit.data[s->heap.data[k + 1]].activity > s->bit.data[s->heap.data[k]].activity) k++;
        if (s->bit.data[s->heap.data[k]].activity <= s->bit.data[b].activity) break;
        heap_put(s, at, s->heap.data[k]);
    }
    heap_put(s, at, b);
}

static void heap_add(Sat *s, uint32_t b)
{
    if (s->bit.data[b].heap != NONE || !s->bit.data[b].in_cone) return;
    vec_push(&s->heap, b);
    s->bit.data[b].heap = s->heap.n - 1;
    sift_up(s, s->heap.n - 1);
}

static uint32_t heap_pop(Sat *s)
{
    uint32_t b = s->heap.data[0], last = s->heap.data[--s->heap.n];
    s->bit.data[b].heap = NONE;
    if (s->heap.n) {
        heap_put(s, 0, last);
        sift_down(s, 0);
    }
    return b;
}

static void bump(Sat *s, uint32_t b)
{
    if ((s->bit.data[b].activity += s->step) > LARGE) {
        for (uint32_t i = 0; i < s->bit.n; i++) s->bit.data[i].activity /= LARGE;
        s->step /= LARGE;
    }
    if (s->bit.data[b].heap != NONE) sift_up(s, s->bit.data[b].heap);
}

/* ---- assignment ---- */
static uint32_t level(const Sat *s) { return s->mark.n; }

/* False: it is false already. */
static bool assign(Sat *s, SatLit l, Reason r)
{
    if (s->value.data[l]) return s->value.data[l] > 0;
    Bit *b = &s->bit.data[l >> 1];
    s->value.data[l] = 1, s->value.data[l ^ 1] = -1;
    b->level = level(s), b->pos = s->trail.n, b->reason = r;
    vec_push(&s->trail, l);
    return true;
}

static void shift_slacks(Sat *s, SatLit now_false, int sign)
{
    for (uint32_t i = s->first_occ.data[now_false]; i; i = s->occ.data[i - 1].next) {
        const Occ *o = &s->occ.data[i - 1];
        s->con.data[o->con].slack += sign * (int64_t)o->c;
    }
}

static void cancel(Sat *s, uint32_t to)
{
    if (level(s) <= to) return;
    for (uint32_t i = s->trail.n; i-- > s->mark.data[to];) {
        SatLit l = s->trail.data[i];
        if (i < s->head) shift_slacks(s, sat_not(l), 1);
        s->bit.data[l >> 1].phase = l & 1 ? -1 : 1;
        s->value.data[l] = s->value.data[l ^ 1] = 0;
        heap_add(s, l >> 1);
    }
    s->trail.n = s->mark.data[to];
    if (s->head > s->trail.n) s->head = s->trail.n;
    s->mark.n = to;
}

/* ---- propagation ---- */

/* What a constraint with a small slack asks for; false: it is violated. */
static bool use_con(Sat *s, uint32_t at)
{
    const Con *c = &s->con.data[at];
    if (c->slack < 0) return false;
    for (uint32_t i = 0; c->slack < c->most && i < c->n; i++) {
        SatTerm t = s->term.data[c->first + i];
        if (t.c > c->slack && !s->value.data[t.l]) assign(s, t.l, (Reason){BY_CON, at});
    }
    return true;
}

static bool propagate_cons(Sat *s, SatLit now_false, Reason *conflict)
{
    bool ok = true;
    shift_slacks(s, now_false, -1);
    for (uint32_t i = s->first_occ.data[now_false]; ok && i; i = s->occ.data[i - 1].next) {
        uint32_t c = s->occ.data[i - 1].con;
        ok = use_con(s, c);
        if (!ok) *conflict = (Reason){BY_CON, c};
    }
    return ok;
}

static bool propagate_clauses(Sat *s, SatLit now_false, Reason *conflict)
{
    List *w = &s->watch.data[now_false];
    uint32_t kept = 0, i = 0;
    bool ok = true;
    for (; ok && i < w->n; i++) {
        uint32_t c = w->data[i];
        SatLit *l = &s->lit.data[s->clause.data[c].first];
        if (l[0] == now_false) l[0] = l[1], l[1] = now_false;
        uint32_t k = 2, n = s->clause.data[c].n;
        if (s->value.data[l[0]] <= 0)
            while (k < n && s->value.data[l[k]] < 0) k++;
        if (s->value.data[l[0]] <= 0 && k < n) {
            l[1] = l[k], l[k] = now_false;
            vec_push(&s->watch.data[l[1]], c);
            continue;
        }
        w->data[kept++] = c;
        if (s->value.data[l[0]] <= 0 && !assign(s, l[0], (Reason){BY_CLAUSE, c})) ok = false, *conflict = (Reason){BY_CLAUSE, c};
    }
    for (; i < w->n; i++) w->data[kept++] = w->data[i];
    w->n = kept;
    return ok;
}

static bool propagate(Sat *s, Reason *conflict)
{
    while (s->head < s->trail.n) {
        SatLit f = sat_not(s->trail.data[s->head++]);
        if (!propagate_cons(s, f, conflict) || !propagate_clauses(s, f, conflict)) return false;
    }
    return true;
}

/* ---- conflicts ---- */

/* False literals that alone make the constraint ask for `implied` (NONE: violate it), of those that were false before it. Those that are false for good
 * cost nothing and come first. */
static void con_reason(Sat *s, uint32_t at, SatLit implied)
{
    const Con *c = &s->con.data[at];
    int64_t left = -c->bound;
    for (uint32_t i = 0; i < c->n; i++) left += s->term.data[c->first + i].l == implied ? 0 : s->term.data[c->first + i].c;
    for (int later = 0; later < 2; later++)
        for (uint32_t i = 0; left >= 0 && i < c->n; i++) {
            SatTerm t = s->term.data[c->first + i];
            const Bit *b = &s->bit.data[t.l >> 1];
            if (t.l == implied || s->value.data[t.l] >= 0 || (b->level > 0) != later) continue;
            if (implied != NONE && b->pos > s->bit.data[implied >> 1].pos) continue;
            left -= t.c;
            vec_push(&s->why, t.l);
        }
}

static void reason_of(Sat *s, Reason r, SatLit implied)
{
    s->why.n = 0;
    if (r.by == BY_CON) con_reason(s, r.at, implied);
    for (uint32_t i = 0; r.by == BY_CLAUSE && i < s->clause.data[r.at].n; i++) {
        SatLit l = s->lit.data[s->clause.data[r.at].first + i];
        if (l != implied) vec_push(&s->why, l);
    }
}

/* The clause of the first unique implication point: its literal first, then one of the level to return to. */
static uint32_t analyse(Sat *s, Reason conflict)
{
    uint32_t open = 0, at = s->trail.n, back = 0;
    SatLit l = NONE;
    s->learnt.n = 0;
    vec_push(&s->learnt, 0);
    do {
        reason_of(s, conflict, l);
        for (uint32_t i = 0; i < s->why.n; i++) {
            Bit *b = &s->bit.data[s->why.data[i] >> 1];
            if (b->seen || !b->level) continue;
            b->seen = true;
            bump(s, s->why.data[i] >> 1);
            if (b->level == level(s)) open++;
            else vec_push(&s->learnt, s->why.data[i]);
        }
        while (!s->bit.data[s->trail.data[--at] >> 1].seen) {}
        l = s->trail.data[at];
        s->bit.data[l >> 1].seen = false;
        conflict = s->bit.data[l >> 1].reason;
    } while (--open);
    s->learnt.data[0] = sat_not(l);
    for (uint32_t i = 1; i < s->learnt.n; i++) {
        SatLit x = s->learnt.data[i];
        s->bit.data[x >> 1].seen = false;
        if (s->bit.data[x >> 1].level <= back) continue;
        back = s->bit.data[x >> 1].level;
        s->learnt.data[i] = s->learnt.data[1], s->learnt.data[1] = x;
    }
    return back;
}

static void learn(Sat *s)
{
    SatLit l = s->learnt.data[0];
    if (s->learnt.n == 1) {
        s->bit.data[l >> 1].fixed = l & 1 ? -1 : 1;
        assign(s, l, (Reason){BY_CHOICE, 0});
        return;
    }
    uint32_t c = vec_push(&s->clause, ((Clause){s->lit.n, s->learnt.n}));
    for (uint32_t i = 0; i < s->learnt.n; i++) vec_push(&s->lit, s->learnt.data[i]);
    for (int i = 0; i < 2; i++) vec_push(&s->watch.data[s->learnt.data[i]], c);
    assign(s, l, (Reason){BY_CLAUSE, c});
}

/* Between questions: long clauses go when there are many. */
static void forget(Sat *s)
{
    uint32_t n = 0, at = 0;
    if (s->clause.n < MAX_LEARNT) return;
    for (uint32_t i = 0; i < s->watch.n; i++) s->watch.data[i].n = 0;
    for (uint32_t i = 0; i < s->clause.n; i++) {
        Clause c = s->clause.data[i];
        if (c.n > LONG_CLAUSE) continue;
        memmove(&s->lit.data[at], &s->lit.data[c.first], c.n * sizeof *s->lit.data);
        for (int k = 0; k < 2; k++) vec_push(&s->watch.data[s->lit.data[at + (uint32_t)k]], n);
        s->clause.data[n++] = (Clause){at, c.n};
        at += c.n;
    }
    s->clause.n = n, s->lit.n = at;
}

/* ---- the cone ---- */
static void meet(Sat *s, uint32_t b, uint32_t depth)
{
    if (s->bit.data[b].in_cone) return;
    s->bit.data[b].in_cone = true;
    s->bit.data[b].depth = depth;
    vec_push(&s->cone, b);
}

static void take_con(Sat *s, uint32_t c, uint32_t depth)
{
    const Con x = s->con.data[c];
    if (x.active) return;
    s->con.data[c].active = true;
    vec_push(&s->cons, c);
    for (uint32_t i = 0; i < x.n; i++) {
        SatTerm t = s->term.data[x.first + i];
        meet(s, t.l >> 1, depth);
        s->first_occ.data[t.l] = vec_push(&s->occ, ((Occ){c, s->first_occ.data[t.l], t.c})) + 1;
    }
}

static void make_cone(Sat *s, const SatLit *l, uint32_t n, uint32_t depth)
{
    for (uint32_t i = 0; i < n; i++) meet(s, l[i] >> 1, 0);
    for (uint32_t i = 0; i < s->cone.n; i++) {
        uint32_t d = s->bit.data[s->cone.data[i]].depth;
        for (uint32_t c = d < depth ? s->bit.data[s->cone.data[i]].defs : 0; c; c = s->con.data[c - 1].next) take_con(s, c - 1, d + 1);
        for (uint32_t k = s->bit.data[s->cone.data[i]].facts; k; k = s->link.data[k - 1].next)
            if (s->con.data[s->link.data[k - 1].con].whole) take_con(s, s->link.data[k - 1].con, d);
    }
    for (uint32_t i = 0; i < s->cone.n; i++)
        for (uint32_t k = s->bit.data[s->cone.data[i]].facts; k; k = s->link.data[k - 1].next) {
            const Con *c = &s->con.data[s->link.data[k - 1].con];
            bool all = true;
            for (uint32_t j = 0; all && j < c->n; j++) all = s->bit.data[s->term.data[c->first + j].l >> 1].in_cone;
            if (all) take_con(s, s->link.data[k - 1].con, depth);
        }
}

/* What holds without any assumption; false: nothing can. */
static bool begin(Sat *s)
{
    Reason conflict;
    bool ok = true;
    for (uint32_t i = 0; i < s->cone.n; i++) {
        uint32_t b = s->cone.data[i];
        heap_add(s, b);
        if (s->bit.data[b].fixed) assign(s, 2 * b + (s->bit.data[b].fixed < 0), (Reason){BY_CHOICE, 0});
    }
    for (uint32_t i = 0; ok && i < s->cons.n; i++) ok = use_con(s, s->cons.data[i]);
    return ok && propagate(s, &conflict);
}

static void end(Sat *s)
{
    cancel(s, 0);
    for (uint32_t i = 0; i < s->trail.n; i++) {
        SatLit l = s->trail.data[i];
        if (i < s->head) shift_slacks(s, sat_not(l), 1);
        s->value.data[l] = s->value.data[l ^ 1] = 0;
    }
    s->trail.n = s->head = 0;
    for (uint32_t i = 0; i < s->cons.n; i++) s->con.data[s->cons.data[i]].active = false;
    for (uint32_t i = 0; i < s->heap.n; i++) s->bit.data[s->heap.data[i]].heap = NONE;
    for (uint32_t i = 0; i < s->cone.n; i++) {
        uint32_t b = s->cone.data[i];
        s->bit.data[b].in_cone = false;
        s->first_occ.data[2 * b] = s->first_occ.data[2 * b + 1] = 0;
    }
    s->cone.n = s->cons.n = s->heap.n = s->occ.n = 0;
}

/* ---- search ---- */

/* The next assumption that is open, else the most active bit; NONE: all is decided; *no: an assumption is false. */
static SatLit next_choice(Sat *s, const SatLit *l, uint32_t n, bool *no)
{
    *no = false;
    while (level(s) < n) {
        SatLit a = l[level(s)];
        if (s->value.data[a] < 0) *no = true;
        if (s->value.data[a] <= 0) return a;
        vec_push(&s->mark, s->trail.n); /* it holds already: an empty level */
    }
    while (s->heap.n) {
        uint32_t b = heap_pop(s);
        if (!s->value.data[2 * b]) return 2 * b + (s->bit.data[b].phase < 0);
    }
    return NONE;
}

static SatAnswer search(Sat *s, const SatLit *l, uint32_t n, uint32_t budget)
{
    Reason conflict;
    for (uint32_t met = 0;;) {
        if (!propagate(s, &conflict)) {
            met++;
            if (!level(s)) return SAT_NO;
            uint32_t back = analyse(s, conflict);
            cancel(s, back);
            learn(s);
            s->step *= DECAY;
            if (met >= budget) return SAT_SPENT;
            if (met % RESTART == 0) cancel(s, 0);
            continue;
        }
        bool no;
        SatLit next = next_choice(s, l, n, &no);
        if (no) return SAT_NO;
        if (next == NONE) return SAT_MAYBE;
        vec_push(&s->mark, s->trail.n);
        assign(s, next, (Reason){BY_CHOICE, 0});
    }
}

static void keep_model(Sat *s)
{
    for (uint32_t i = 0; i < s->cone.n; i++) {
        Bit *b = &s->bit.data[s->cone.data[i]];
        b->phase = s->value.data[2 * s->cone.data[i]];
        b->modelled = s->asked;
    }
}

int sat_model(const Sat *s, SatLit l)
{
    const Bit *b = &s->bit.data[l >> 1];
    return b->modelled != s->asked ? 0 : l & 1 ? -b->phase : b->phase;
}

SatAnswer sat_ask(Sat *s, const SatLit *l, uint32_t n, uint32_t depth, uint32_t budget)
{
    make_cone(s, l, n, depth);
    SatAnswer r = begin(s) ? search(s, l, n, budget) : SAT_NO;
    s->asked++;
    if (r == SAT_MAYBE) keep_model(s);
    end(s);
    forget(s);
    return r;
}
