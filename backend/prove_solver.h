/* prove_solver.h: the inside of the solver, for prove_solve.c (variables, their values and bounds), prove_sample.c (examples), prove_search.c
 * (propagation and case split), prove_learn.c (facts about pairs, proofs of ranges) and prove_encode.c (search over bits). */
#ifndef TAPEOUT_PROVE_SOLVER_H
#define TAPEOUT_PROVE_SOLVER_H
#include "prove_priv.h"

typedef struct {
    Var v;
    int32_t lo, hi;
} Old;
typedef struct {
    Var form;
    bool whole;    /* reaching one of its variables reaches them all; else it counts only when all are reached anyway */
    uint32_t next; /* index + 1 */
} Side;
/* A gate of a definition: the condition g == gtop of a table. */
typedef struct {
    Var g;
    int32_t gtop;
} Arm;
typedef struct {
    Var user;      /* the constraint of this LIN or DEF */
    uint32_t next; /* index + 1 */
} Watch;
/* How much a question about two bits may cost: a few levels and hardly a split, or more, or all. */
typedef enum { SHALLOW, MODERATE, FULL } Effort;
/* What has been found about two literals. */
typedef struct {
    uint64_t key;  /* 0: a free place */
    bool holds;    /* they exclude each other; else that was not shown */
    Effort effort; /* ... with this */
} Fact;

typedef struct Encoder Encoder;

/* Where a search over bits ends with an assignment that is no example, some table was too large for it; the searches with all definitions that are
 * tried then are given up when this many nodes showed nothing. */
enum { DEEP = 20000 };
enum { SAMPLES = 64, EXAMPLES = 32 /* the latest that are kept */ };
#define OPEN INT32_MIN /* not worked out yet */

struct Solver {
    Pool *pool;
    char *chunk;
    size_t left;
    VEC(VarInfo) v;
    Var *hash;
    uint32_t hash_cap, nhash;
    int32_t *list;      /* scratch of solver_values */
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
    uint32_t head;
    uint32_t budget, limit; /* splits left, and at the start */
    uint32_t asked;   /* definitions and forms in it */
    uint32_t depth, never_depth; /* levels in it; where the last solver_never was answered */
    bool spent;       /* a search of the last question ended for lack of budget */
    bool low_first;   /* split definitions of the lowest level first, else those nearest the question */
    /* facts */
    Fact *fact;
    uint32_t fact_cap, nfacts;
    Var last_apart;   /* the last definition whose gates were shown to be on one at a time; NO_VAR: none */
    VEC(int32_t) samples; /* [variable][SAMPLES] */
    VEC(int32_t) example[EXAMPLES]; /* [variable]: its value, or OPEN */
    uint32_t nexamples;
    VEC(Var) free;    /* the free variables */
    Var hot;          /* the first of nhot bits of which one is 1 */
    uint32_t nhot;
    Encoder *encoder; /* prove_encode.c */
    bool bits_first;  /* it answered the last question about a range */
    uint64_t random, nodes, vain; /* searches' nodes; those of full searches for a fact that found none */
    uint64_t deep;    /* nodes of what was tried in vain after a search over bits had not answered, see DEEP */
};

/* ---- prove_solve.c ---- */
void solver_side(Solver *s, Var v, Var form, bool whole);
int32_t solver_clamp(int64_t x);
/* ---- ranges of parts of definitions, from the ranges of the variables ---- */
/* Adds. */
static inline void lin_bounds(const Solver *s, const VarTerm *t, uint32_t n, int64_t *lo, int64_t *hi)
{
    for (uint32_t i = 0; i < n; i++) {
        const VarInfo *x = &s->v.data[t[i].v];
        *lo += (int64_t)t[i].c * (t[i].c > 0 ? x->lo : x->hi);
        *hi += (int64_t)t[i].c * (t[i].c > 0 ? x->hi : x->lo);
    }
}

/* Whether the condition g == gtop: 1 holds, 0 does not, -1 is open. */
static inline int guard_state(const Solver *s, const Table *t)
{
    if (t->g == NO_VAR || s->v.data[t->g].lo >= t->gtop) return 1;
    return s->v.data[t->g].hi < t->gtop ? 0 : -1;
}

static inline void range_product(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi)
{
    int64_t c[4] = {alo * blo, alo * bhi, ahi * blo, ahi * bhi};
    *lo = *hi = c[0];
    for (int i = 1; i < 4; i++) *lo = c[i] < *lo ? c[i] : *lo, *hi = c[i] > *hi ? c[i] : *hi;
}

/* Range of T over s's range. */
static inline void table_bounds(const Solver *sv, const Table *t, int64_t *lo, int64_t *hi)
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

/* Of T(s) * (m + mk), the condition aside. */
static inline void value_bounds(const Solver *s, const Table *t, int64_t *lo, int64_t *hi)
{
    table_bounds(s, t, lo, hi);
    if (t->m == NO_VAR) return;
    const VarInfo *m = &s->v.data[t->m];
    range_product(*lo, *hi, (int64_t)m->lo + t->mk, (int64_t)m->hi + t->mk, lo, hi);
}

/* With the condition. */
static inline void term_bounds(const Solver *s, const Table *t, int64_t *lo, int64_t *hi)
{
    int g = guard_state(s, t);
    *lo = *hi = 0;
    if (g == 0) return;
    value_bounds(s, t, lo, hi);
    if (g == 1) return;
    *lo = *lo < 0 ? *lo : 0, *hi = *hi > 0 ? *hi : 0;
}

/* ---- prove_sample.c ---- */
void sample_var(Solver *s, Var v); /* a new one */
/* Some sample or example has them all. */
bool sample_shows(Solver *s, const Bound *b, uint32_t n);
/* What encoder_model says becomes an example. */
void sample_add(Solver *s);

/* ---- prove_world.c ---- */
/* Sets the worlds of a form or definition that is about to be made, and narrows its range. */
void world_ranges(Solver *s, VarInfo *x);

/* ---- prove_encode.c ---- */
Encoder *encoder_new(Solver *s);
void encoder_free(Encoder *e);
/* No pass has all the bounds: by search over bits, within a budget. Where an assignment has them all that is an example from then on. */
bool encoder_impossible(Encoder *e, const Bound *b, uint32_t n);
/* The value of a variable in the assignment that was found last; false: it was not met. */
bool encoder_model(const Encoder *e, Var v, int32_t *value);

/* ---- prove_search.c ---- */
/* One search with the definitions of the nearest `depth` levels; true: impossible. */
bool search_ask(Solver *s, const Bound *b, uint32_t n, uint32_t depth);
/* No pass has them all: with the definitions of the nearest levels; of more. */
bool search_near(Solver *s, const Bound *b, uint32_t n);
bool search_impossible(Solver *s, const Bound *b, uint32_t n);
/* Two bounds never hold together. */
bool search_pair(Solver *s, const Bound *b, Effort e);
#endif
