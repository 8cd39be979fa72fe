/* prove_priv.h: what the files of the proof share. */
#ifndef TAPEOUT_PROVE_PRIV_H
#define TAPEOUT_PROVE_PRIV_H
#include "prove.h"

/* ---- assumptions about the arithmetic; numerics.md gives the sources ---- */
#define SILU_ON 17.0     /* silu(x) == x from here: exp(-x) < 2^-24 even when it is 40 % too large (float32; bfloat16 needs 6.25) */
#define SILU_OFF 104.0   /* silu(-x) == -0 and sigmoid(-x) == 0 from here, in every formula: exp(-x) is 0, or exp(x) infinite */
#define SIGMOID_ONE 17.0

/* ---- integer variables ----
 * A variable is the value of a channel after a block, a linear form of such values, or a free input (a bit of the state, of the payload).
 * Its range holds in every reachable pass. */
typedef uint32_t Var;
enum { NO_VAR = UINT32_MAX };

typedef struct {
    Var v;
    int32_t c;
} VarTerm;

/* T(s) * (m + mk), or T(s) when m is NO_VAR. T is given for s in [s0, s0 + n). */
typedef struct {
    Var s, m;
    int32_t mk, s0, n;
    int32_t *t;
    int8_t mono;   /* T is: 1 rising, -1 falling, 0 neither */
} Table;

typedef enum { VAR_FREE, VAR_LIN, VAR_DEF } VarKind;
typedef struct {
    VarKind kind;
    int32_t lo, hi;
    int32_t k;         /* DEF: constant part */
    uint32_t nlin, ntable;
    VarTerm *lin;      /* LIN: the form; DEF: the affine part */
    Table *table;      /* DEF */
    uint32_t level;    /* longest chain of definitions below it */
} VarInfo;

typedef struct Solver Solver;
Solver *solver_new(Pool *pool);
void solver_free(Solver *s);
Var solver_free_var(Solver *s, int32_t lo, int32_t hi);
/* The variable of a linear form without constant (terms sorted by variable, no zero coefficients); equal forms are one variable. */
Var solver_lin(Solver *s, const VarTerm *t, uint32_t n);
/* A defined variable. The arrays are copied. Its range is the interval hull of the definition; solver_tighten does better. */
Var solver_def(Solver *s, int32_t k, const VarTerm *lin, uint32_t nlin, const Table *table, uint32_t ntable);
VarInfo *solver_var(const Solver *s, Var v);
/* Proves lo <= v <= hi by case split, within a budget; on success that becomes v's range. */
bool solver_prove(Solver *s, Var v, int32_t lo, int32_t hi);
/* Whether no reachable pass has lo <= v <= hi for all of the list at once (sound, not complete). */
typedef struct {
    Var v;
    int32_t lo, hi;
} Bound;
bool solver_impossible(Solver *s, const Bound *b, uint32_t n);
/* The range of v under the list, by propagation alone. False when the list is impossible. */
bool solver_range(Solver *s, const Bound *b, uint32_t n, Var v, int32_t *lo, int32_t *hi);
uint64_t solver_nodes(const Solver *s);

/* ---- margins ---- */
typedef enum { M_NORM, M_SUM, M_ROUND, M_GATE_ON, M_GATE_OFF, M_BETA, M_KEY, M_CELL, M_READ, M_DECAY, M_LOGIT, M_KINDS } MarginKind;

typedef struct {
    double ratio;       /* decisive quantity / what it must exceed */
    MarginKind kind;
    int layer;          /* -1: vocabulary */
    const char *tensor; /* or what */
    uint32_t row, line;
} Margin;

/* ---- forms: a row of a projection over the normalised stream ---- */
typedef struct {
    uint32_t ch;
    double c;    /* times the channel's integer value */
} FormTerm;
typedef struct {
    uint32_t n;
    FormTerm *t;
    double k;     /* the pilots' part */
    double kabs;  /* the sum of its parts' magnitudes */
    double kunit; /* a power of two of which all those parts are multiples; 0: none */
} Form;

typedef struct Prover {
    const Model *m;
    const Geometry *g;
    ProveOptions opt;
    Pool *pool;
    Solver *s;
    bool bf16;
    double scale;       /* the RMS: 2^K */
    bool *pilot;        /* [hidden] */
    double *pilot_value;
    Var *chan;          /* [hidden] the channel's value now; NO_VAR: constant */
    int32_t *constant;  /* [hidden] its value then */
    /* vocabulary */
    Var *kind_var;      /* per kind: 1 when this token is of that kind */
    Var *payload_var;   /* per bit */
    int layer;
    const int32_t *lines; /* of this layer's MLP units */
    uint32_t nlines;
    /* results */
    VEC(Margin) margins;
    VEC(const char *) notes;   /* what the verdict assumes beyond numerics.md */
    char *refusal;
    uint32_t unproved;  /* bits that could not be shown to be bits */
    Band *bands;
    FILE *report;
} Prover;

/* Records the first reason; always false. */
bool refuse(Prover *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void note(Prover *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ratio > 1 is well; otherwise refuses. */
bool margin(Prover *p, MarginKind kind, double ratio, const char *tensor, uint32_t row, uint32_t line);

/* prove_form.c */
/* All rows of a tensor as forms (over x = RMSNorm(h) with the given zero-centred gain): form[rows]. */
bool forms_make(Prover *p, const Tensor *t, const char *name, const Tensor *gain, Form **out);
/* The row's rounding: exact for any order of summation. Ranges of the value in *lo, *hi. Without `output`, the dtype's rounding of the
 * result is not asked to be exact (only its sign matters). */
bool form_exact(Prover *p, const Form *f, const char *name, uint32_t row, uint32_t line);
void form_range(const Prover *p, const Form *f, double *lo, double *hi);
/* form = a * s + k for a linear variable s; a > 0; NO_VAR when it is constant. */
bool form_var(Prover *p, const Form *f, Var *s, double *a, double *k);
double low_bit(double v);     /* largest power of two that divides v; 0 for 0 */
bool holds(bool bf16, double v); /* v is a number of the dtype */
double round_to(bool bf16, double v); /* nearest number of the dtype */
int32_t chan_lo(const Prover *p, uint32_t ch);
int32_t chan_hi(const Prover *p, uint32_t ch);

/* A channel's new definition under construction. */
typedef struct {
    uint32_t ch;
    double k;
    VEC(VarTerm) lin;
    VEC(Table) table;
    double absum, unit; /* of the terms of the projection that adds to it */
    uint32_t line;
} Sum;
/* Adds w * relu-like T(s) * (m + mk); merges tables of the same s and m. The table's values are doubled-checked integers in sum_finish. */
bool sums_finish(Prover *p, Sum *sums, uint32_t n, const char *name);

/* prove_vocab.c */
bool prove_embedding(Prover *p);
bool prove_argmax(Prover *p);
/* prove_delta.c, prove_mlp.c */
bool prove_delta(Prover *p, const Layer *l);
bool prove_mlp(Prover *p, const Layer *l);
/* prove.c */
bool prove_norm(Prover *p, const char *name);
#endif
